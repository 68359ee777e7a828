//===- Gradients.h - Derivatives within a model -------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc::torch {

/// Puts gpuc.gradient, and a function of what it differentiates, in the place of what gpuc::gradient and
/// gpuc::marked were lowered to. Behind this nothing of them is left in `function`.
void expandGradients(mlir::func::FuncOp function);

} // namespace gpuc::torch
