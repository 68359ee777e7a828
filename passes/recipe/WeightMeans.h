//===- WeightMeans.h - A running mean of the weights -------------------------===//
#pragma once

#include "passes/base/Specs.h"
#include "passes/recipe/StepBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// A recipe's `ema`: of each trained variable the running mean e ← decay · e + (1 - decay) · w, taken after
/// its update, as torch.optim.swa_utils.AveragedModel with get_ema_avg_fn(decay): the first update copies the
/// weight. Before it the mean is the weight's first value.
struct WeightMeans {
  double decay;
  bool evaluate; ///< Whether @eval_step and @predict see the means in the weights' place.

  /// Unknown keys and a decay outside of [0, 1] are errors.
  static llvm::FailureOr<WeightMeans> fromSpec(ir::SpecAttr spec, EmitError emitError);

  /// Declares `<variable>/ema` and assigns it the mean. `step` counts this update, from 1.
  void build(mlir::ModuleOp module, StepBuilder &ops, ir::VariableOp variable, ir::Expr updated,
             mlir::Value step) const;
};

/// Lets the function read the means in place of the weights, where there are means.
void readMeans(mlir::func::FuncOp function);

/// The variable whose first value `variable` takes, of init copy(variable = "…"); empty for other
/// initializers.
llvm::StringRef copiedVariable(ir::VariableOp variable);

} // namespace gpuc
