//===- SumOverParts.h - From a part of the batch to all of it ------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Puts in the place of `part`, a function over one part of the batch (`gpuc.partition`) that returns sums
/// over its rows, one over the whole batch that returns the sums over all rows. A function without that
/// attribute is one over the whole batch.
llvm::LogicalResult sumOverParts(mlir::func::FuncOp &part);

} // namespace gpuc
