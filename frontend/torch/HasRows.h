//===- HasRows.h - What of a loss is of the batch's rows ---------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>

namespace gpuc::torch {

/// Of an argument of a loss, and of an op that draws whatever the batch holds: whether it has rows, where
/// that is known, and extents need not be asked. markRows() takes it off again.
inline constexpr llvm::StringLiteral kRowsAreKnownAttr = "torch.has_rows";

/// Says it (kHasRowsAttr) of the arguments of a loss, of what is drawn in it, and of its batch norms.
void markRows(mlir::func::FuncOp loss, int64_t batch);

} // namespace gpuc::torch
