//===- LogitsOfLosses.h - Losses of log-softmaxes ----------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Has negative log-likelihoods of log-softmaxes that nothing else reads take the logits themselves, as cross
/// entropies. Rows may be reshaped, and classes transposed, in between.
void takeLogits(mlir::func::FuncOp function);

} // namespace gpuc
