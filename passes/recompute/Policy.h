//===- Policy.h - What of the forward pass is kept ---------------------------===//
#pragma once

#include "passes/recompute/StepForward.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace gpuc {

/// Says what the backward pass may read without computing it again.
struct CheckpointPolicy {
  enum class Kind { none, sqrt, full, save, blocks };

  Kind kind = Kind::none;
  /// Of `save` mnemonics of ops whose results are kept; of `blocks` patterns of layers that are not.
  std::vector<std::string> names;

  /// none, sqrt, full, save=OP,OP… or blocks=LAYER,LAYER… Fails, saying why in `error`, for other texts and
  /// for ops that the dialect, which `context` has loaded, does not have.
  static mlir::FailureOr<CheckpointPolicy> parse(llvm::StringRef text, mlir::MLIRContext *context,
                                                 std::string &error);

  /// Whether what is dropped is computed again with all around it: then it is there for whoever reads it, and
  /// need not be written again by another kernel (base/WrittenAgain.h).
  bool dropsWholes() const { return kind == Kind::sqrt || kind == Kind::full || kind == Kind::blocks; }

  /// What reads back as the same.
  std::string text() const;
};

/// The policy that `text` names, of kModelPolicy that of the module's gpuc.checkpoint ops, which are taken
/// away. Fails, with an error, for other texts and for blocks that are no layers of the module; of ops that
/// another policy overrules a warning tells.
mlir::FailureOr<CheckpointPolicy> takePolicy(llvm::StringRef text, mlir::ModuleOp module);

/// The numbers of the values that are kept. `full` and `sqrt` keep all where cutting frees nothing.
llvm::BitVector valuesKept(const CheckpointPolicy &policy, const StepForward &step);

} // namespace gpuc
