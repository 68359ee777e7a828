//===- PartNumber.h - What a part must know of the batch -----------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Gives a function over one part of the batch (`gpuc.partition`) a last argument, the part's number, a
/// tensor<i64>, by which it masks those of the part's rows that hold no sample, and draws the random numbers
/// that the whole batch has there.
llvm::LogicalResult addPartNumber(mlir::func::FuncOp function);

} // namespace gpuc
