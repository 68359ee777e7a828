//===- MeanGradients.h - From a part's sums to the gradients of the batch's mean ===//
//
// A loss is a sum over rows, and so are its gradients; a step is made by the gradients of the mean over the
// whole batch. All that lies between is here, in this order:
//
//   seed    what flows back from the loss. It is 1, so that gradients are those of the sum; or, where the
//           recipe has a loss scale, the scale over the batch's count: of a sum f16 holds no gradient, but of
//           the scaled mean it does
//   sums    over the parts of the batch (batch/SumOverParts.cpp)
//   means   the sums over the count; of a mean that was scaled, over the scale
//
// So each gradient is divided once, and nothing is multiplied back. Where there is a scale and there are
// parts, the batch is counted before the first backward pass: that takes labels and masks, and no forward
// pass.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/recipe/LossScale.h"
#include "passes/train/EntryBuilder.h"

namespace gpuc {

/// Of an argument of `@gradients`: what flows back from the loss.
inline constexpr llvm::StringLiteral kSeedRole = "seed";

/// A variable that is trained, and its gradient.
struct Trained {
  ir::VariableOp variable;
  mlir::Value gradient;
};

/// Values of @train_step.
struct MeanGradients {
  mlir::Value loss, count;             ///< Sums over the batch.
  mlir::Value divisor;                 ///< Of the loss: the count, or 1 where nothing counts.
  mlir::Value scale;                   ///< Of this step; null without a loss scale.
  llvm::SmallVector<mlir::Value> sums; ///< What was divided, in the order of `trained`.
  llvm::SmallVector<Trained> trained;  ///< With the gradients of the mean.
};

/// Of the results of `@gradients`: behind loss and count.
inline constexpr unsigned kFirstGradient = 2;

/// The variables that are trained, in the order of their gradients.
llvm::SmallVector<ir::VariableOp> trainedBy(mlir::func::FuncOp gradients);

/// Builds them in `entry`, of `@gradients`, which is over a part of the batch or all of it. What is done for
/// all gradients at once stands at `location`.
llvm::FailureOr<MeanGradients> buildMeanGradients(EntryBuilder &entry, mlir::Location location,
                                                  ir::RecipeOp recipe, mlir::func::FuncOp gradients,
                                                  const std::optional<LossScale> &lossScale);

} // namespace gpuc
