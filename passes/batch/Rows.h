//===- Rows.h - What a function does to the rows of a batch -------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Whether all that the function returns are sums over the rows of the batch (the leading `?`), and each row
/// goes its way without the others. The results over all rows are then the sums of those over parts of them.
/// Calls are inlined. False for ops of which this is not known.
bool addsUpIndependentRows(mlir::func::FuncOp function);

} // namespace gpuc
