//===- TrainStep.h - What a recipe does with gradients -----------------------===//
#pragma once

#include "passes/recipe/ParameterGroups.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Builds @train_step of `gradients`, which returns loss, count and the sums that are the gradients, and of
/// the recipe's wishes. `step` is the counter @step.
llvm::LogicalResult buildTrainStep(mlir::ModuleOp module, ir::RecipeOp recipe, mlir::func::FuncOp gradients,
                                   ir::VariableOp step);

} // namespace gpuc
