//===- TrainingReference.h - What a training module means, with tolerances ----===//
#pragma once

#include "runtime/base/status.h"
#include "test/reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace gpuc::gradients {

using Variables = std::map<std::string, reference::Tensor>;

/// What an entry gives: its results, and every variable after it. Element::terms say how far a device may be
/// off.
struct Outcome {
  std::vector<reference::Tensor> results;
  Variables variables;
};

/// The entries of a module as gpuc-expand-recipe makes them, interpreted in f64: no op is fused, decomposed
/// or moved out of a loop. Tolerances come from a second run, of their decomposition: see RunningError.h.
class TrainingReference {
public:
  /// Errors: what is no module with a recipe that the passes up to there take.
  static Result<TrainingReference> create(const std::string &text);

  /// @init, @train_step, @eval_step or @predict; null if there is none.
  mlir::func::FuncOp entry(llvm::StringRef name) { return module_->lookupSymbol<mlir::func::FuncOp>(name); }

  /// All variables, by name.
  const std::map<std::string, mlir::RankedTensorType> &variables() const { return types_; }

  /// Runs an entry. Errors: the two runs differ by more than the tolerance, which is a decomposition's fault.
  Result<Outcome> run(llvm::StringRef name, llvm::ArrayRef<reference::Tensor> arguments,
                      const Variables &state);

private:
  TrainingReference() = default;

  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_, decomposed_;
  std::map<std::string, mlir::RankedTensorType> types_;
};

/// What of `found` is not what is expected, within its tolerance: "element 3: 0.5 where 0.25 was expected,
/// …". Empty if nothing. What has no finite tolerance is not compared.
std::string differenceOf(const reference::Tensor &expected, const reference::Tensor &found);

/// How many elements have a tolerance below 2^-7 of their tensor's largest number, so that comparing them
/// says something, of how many.
struct Coverage {
  int64_t tight = 0, all = 0;
  void count(const reference::Tensor &expected);
};

} // namespace gpuc::gradients
