//===- LayoutGroups.h - Images that lie in memory in one order --------------===//
//
// An image is a value of rank 4, as models have it (N, C, H, W). Where one op reads images of one order and
// gives some of the same, they are linked; whatever is linked is transposed together or not at all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/SetVector.h"

namespace gpuc {

struct LayoutGroup {
  llvm::SetVector<mlir::Value> images;               ///< In the order of the block.
  llvm::SetVector<mlir::Operation *> ops;            ///< That link them, in the order of the block.
  llvm::SmallVector<mlir::Operation *> convolutions; ///< Those of `ops` that are.
};

/// Whether the value costs as little in one order as in another: one number, an index, or a broadcast.
bool isMadeAnew(mlir::Value value);

/// The groups of a block that hold convolutions on tensor cores, in the order of the first of them.
llvm::SmallVector<LayoutGroup> findLayoutGroups(mlir::Block &block);

/// The filter that a convolution reads, or the gradient of it that it gives.
mlir::Value filterOf(mlir::Operation *convolution);

} // namespace gpuc
