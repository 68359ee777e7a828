//===- BlockOrder.h - The order of a block's ops ------------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/Support/LLVM.h"

namespace gpuc {

/// Moves ops that stand before what they read behind it; the others keep their order, and so do those that
/// move, among themselves, as far as they can. Fails if ops wait for one another. Takes time in proportion to
/// the reads in the block.
llvm::LogicalResult sortBehindOperands(mlir::Block &block);

} // namespace gpuc
