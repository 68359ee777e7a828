//===- LossScale.h - Gradients that f16 can hold ----------------------------===//
//
// f16 ends at 65504 and loses digits below 6e-5, where many gradients lie. So the loss is multiplied by a
// scale before it is differentiated, and gradients are divided by it afterwards [Micikevicius et al. 2018].
// A scale that is too large makes a gradient infinite or NaN: that step is skipped, and the scale lowered;
// after many steps without it is raised. Names, defaults and arithmetic are those of PyTorch's GradScaler,
// with a least scale beside them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/base/Specs.h"
#include "passes/recipe/StepBuilder.h"

namespace gpuc {

/// What a recipe's `loss_scale` says, and what the scale is computed with.
struct LossScale {
  double scale; ///< At first, or always.
  bool dynamic;
  double growthFactor = 2, backoffFactor = 0.5, minScale = 1;
  int64_t growthInterval = 2000;

  /// Counters of the module, once they are declared: @loss_scale : tensor<f32>, and @growth_tracker :
  /// tensor<i32>, steps since the scale changed. Null for a scale that stays.
  ir::VariableOp scaleVariable = {}, growthTracker = {};

  /// None for `none`. Errors: unknown names and keys, numbers that GradScaler refuses.
  static llvm::FailureOr<std::optional<LossScale>> fromSpec(ir::SpecAttr spec, EmitError emitError);

  /// The recipe's; if it says nothing, `dynamic` for fp16, else none.
  static llvm::FailureOr<std::optional<LossScale>> fromRecipe(ir::RecipeOp recipe);

  /// Declares those counters that the module does not have. Errors: a name that is taken.
  llvm::LogicalResult declareVariables(mlir::ModuleOp module);

  /// The scale of this step, tensor<f32>.
  ir::Expr build(StepBuilder &ops) const;

  /// GradScaler.update(): assigns the next scale and growth tracker of a dynamic scale.
  void buildUpdate(StepBuilder &ops, ir::Expr scale, mlir::Value allFinite) const;
};

/// f32: how many elements are no numbers below infinity.
ir::Expr countBroken(ir::Expr tensor);

} // namespace gpuc
