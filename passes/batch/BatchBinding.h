//===- BatchBinding.h - A number for the leading `?` --------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Whether a tensor type has a `?`.
bool isDynamic(mlir::Type type);

/// Makes every leading `?` under `root`, in types and in attributes, `batch`.
void bindBatch(mlir::Operation *root, int64_t batch);

/// Gives the function's arguments and random ops that have rows the attribute kPerRowAttr, as long as a `?`
/// shows it.
void markRows(mlir::func::FuncOp function);

} // namespace gpuc
