//===- OptimizerForms.h - The registry of optimizers -------------------------===//
#pragma once

#include "passes/recipe/Optimizers.h"

namespace gpuc {

/// An optimizer: its keys, what of numbers that each are within their range it refuses (empty if nothing),
/// its slots and its update.
struct OptimizerForm {
  SpecForm spec;
  std::string (*check)(const Optimizer &);
  llvm::SmallVector<OptimizerSlot> (*slots)(const Optimizer &, mlir::RankedTensorType variable);
  llvm::SmallVector<mlir::Value> (*update)(const Optimizer &, mlir::OpBuilder &, mlir::Location,
                                           const UpdateOperands &);
};

/// In the order of their names.
llvm::ArrayRef<OptimizerForm> optimizerForms();

/// What weight decay is of, the number of the key `decay`: all variables, or those of rank 2 and more.
constexpr double kDecayAll = 0, kDecayMatrices = 1;

} // namespace gpuc
