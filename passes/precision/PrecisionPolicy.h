//===- PrecisionPolicy.h - What a recipe says of precision ------------------===//
#pragma once

#include "passes/base/Specs.h"
#include "passes/base/Target.h"
#include "passes/precision/PrecisionLists.h"

#include <string>

namespace gpuc {

/// How an op is treated, and why.
struct PrecisionChoice {
  PrecisionClass kind;
  std::string why;
};

/// `bf16(f32 = ("head.*", "gelu"))`, read: the lower precision, and what is treated otherwise than the lists
/// say.
class PrecisionPolicy {
public:
  /// Errors: an unknown precision or key, a pattern that is no text.
  static llvm::FailureOr<PrecisionPolicy> fromSpec(ir::SpecAttr spec, EmitError emitError);

  /// bf16, f16 or tf32; null where all stays f32.
  mlir::FloatType lower() const { return lower_; }

  /// Whether types stay f32, and only the target's products are less precise.
  bool isTf32() const { return lower_ && llvm::isa<mlir::FloatTF32Type>(lower_); }

  /// Checks that the target (host[:CPU], cuda:sm_N) computes in it.
  llvm::LogicalResult checkTarget(const Target &target, EmitError emitError) const;

  /// Checks that each pattern means an op of the dialect, or one of `layers` at least.
  llvm::LogicalResult checkPatterns(const std::set<std::string> &layers, EmitError emitError) const;

  PrecisionChoice choose(mlir::Operation *op) const;

private:
  /// What matches `pattern`, an op's name or that of layers with `*` for anything, is computed so.
  struct Override {
    std::string pattern;
    PrecisionClass kind; // lower or f32

    bool matchesOp(llvm::StringRef op) const;
    bool matchesLayer(llvm::StringRef layer) const;
  };

  std::string name_;
  mlir::FloatType lower_;
  std::vector<Override> overrides_;
};

} // namespace gpuc
