//===- Optimizers.h - What a recipe's optimizer does to a variable -----------===//
//
// The registry of optimizers: names, keys and defaults are PyTorch's (torch.optim), so are the names of
// slots.
//
#pragma once

#include "passes/Specs.h"

namespace gpuc {

struct OptimizerForm;

/// What one update reads. `slots` stand in the order of Optimizer::slots(); `step` counts from 1
/// (tensor<i64>), `lr` is a tensor<f64>.
struct UpdateOperands {
  mlir::Value weight, gradient;
  llvm::SmallVector<mlir::Value> slots;
  mlir::Value step, lr;
};

/// An optimizer with all its numbers.
class Optimizer {
public:
  /// Unknown names and keys, and values that PyTorch refuses, are errors.
  static llvm::FailureOr<Optimizer> fromSpec(ir::SpecAttr spec,
                                             llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

  double learningRate() const { return number("lr"); }

  /// The tensors, shaped like the variable and zero at first, that it keeps for each variable.
  llvm::SmallVector<llvm::StringRef> slots() const;

  /// Builds one update; returns the new weight and the new slots.
  llvm::SmallVector<mlir::Value> buildUpdate(mlir::OpBuilder &builder, mlir::Location location,
                                             const UpdateOperands &operands) const;

  double number(llvm::StringRef key) const { return numbers_.lookup(key); }

private:
  const OptimizerForm *form_ = nullptr;
  SpecNumbers numbers_;
};

} // namespace gpuc
