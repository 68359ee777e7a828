//===- VariableUpdates.h - Let updates write their variables in place -------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Reorders a function so that every assigned value is computed by an op which may write the variable's own
/// bytes: each other reader of the old value stands before it. Where no order does that, or the op reads the
/// variable at other places than it writes, a copying kernel is put between. Afterwards every `gpuc.assign`
/// has a value of its own, the result of a `gpuc.fused` or `gpuc.matmul`, and the function returns values in
/// the shape that they were computed in.
void makeUpdatesInPlace(mlir::func::FuncOp function);

} // namespace gpuc
