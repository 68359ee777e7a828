//===- HasRows.h - What of a loss is of the batch's rows ---------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>

namespace gpuc::torch {

/// Says it (kHasRowsAttr) of the arguments of a loss, of what is drawn in it, and of its batch norms.
void markRows(mlir::func::FuncOp loss, int64_t batch);

} // namespace gpuc::torch
