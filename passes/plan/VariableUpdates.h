//===- VariableUpdates.h - Let updates write their variables in place -------===//
#pragma once

#include "passes/base/Blame.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Reorders a function so that every assigned value is computed by an op which may write the variable's own
/// bytes: each other reader of the old value stands before it. Where no order does that, or the op reads the
/// variable at other places than it writes, a copying kernel is put between. Afterwards every `gpuc.assign`
/// has a value of its own, the result of a `gpuc.fused` or `gpuc.matmul`, and the function returns values in
/// the shape that they were computed in.
void makeUpdatesInPlace(mlir::func::FuncOp function);

/// Whether each op that reads a variable stands before the one that computes what is assigned to it: that is
/// written where the variable lies, and no later proof knows which of both values was meant.
mlir::LogicalResult verifyUpdates(mlir::func::FuncOp function, const Blame &blame);

/// How often makeUpdatesInPlace has looked, in this process, from an op to one that has to follow it, for
/// tests: it must grow as the number of ops does.
uint64_t updateLooks();

} // namespace gpuc
