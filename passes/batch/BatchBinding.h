//===- BatchBinding.h - A number for the leading `?` --------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Whether a tensor type has a `?`.
bool isDynamic(mlir::Type type);

/// Makes every leading `?` under `root`, in types and in attributes, `batch`.
void bindBatch(mlir::Operation *root, int64_t batch);

/// Gives the function's arguments and random ops that have rows the attribute `gpuc.partition`, as long as a
/// `?` shows which these are.
void markRows(mlir::func::FuncOp function, ir::PartitionAttr partition);

} // namespace gpuc
