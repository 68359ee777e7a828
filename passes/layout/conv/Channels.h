//===- Channels.h - Where the channels of images lie --------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "passes/target/TargetDescription.h"

#include "llvm/ADT/SetVector.h"

namespace gpuc {

/// Images that lie in memory in one order. An image is a value of rank 4, as models have it (N, C, H, W).
/// Where one op reads images of one order and gives some of the same, they are linked; whatever is linked is
/// transposed together or not at all.
struct LayoutGroup {
  llvm::SetVector<mlir::Value> images;               ///< In the order of the block.
  llvm::SetVector<mlir::Operation *> ops;            ///< That link them, in the order of the block.
  llvm::SmallVector<mlir::Operation *> convolutions; ///< Those of `ops` that are.
};

/// Whether the value costs as little in one order as in another: one number, an index, or a broadcast.
bool isMadeAnew(mlir::Value value);

/// Such a value whose dimension i is dimension permutation[i] of the given one.
mlir::Value madeAnew(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> permutation);

/// The reduction, of this operand over these dimensions.
mlir::Value fold(mlir::OpBuilder &builder, mlir::Operation *reduction, mlir::Value operand,
                 llvm::ArrayRef<int64_t> dims);

/// The reduction's result, from an operand whose dimension i is dimension permutation[i] of its own.
mlir::Value foldPermuted(mlir::OpBuilder &builder, mlir::Operation *reduction, mlir::Value operand,
                         llvm::ArrayRef<int64_t> permutation);

/// The groups of a block that hold convolutions on tensor cores, in the order of the first of them.
llvm::SmallVector<LayoutGroup> findLayoutGroups(mlir::Block &block);

/// The filter that a convolution reads, or the gradient of it that it gives.
mlir::Value filterOf(mlir::Operation *convolution);

/// Puts convolutions that are written channels last, and poolings if `poolings`, between transposes, channels
/// first themselves.
void transposeToChannelsFirst(mlir::Block &block, bool poolings);

/// Puts the images that convolutions on tensor cores read and write channels last, with whatever is computed
/// between them, where that moves fewer bytes than it saves: decided for each group of images of the block
/// that hang together. Transposes are left at the edges of a group. Adds a decision
/// (base/Decisions.h) over each convolution.
void chooseLayouts(mlir::Block &block, const TargetDescription &device,
                   llvm::SmallVectorImpl<mlir::Attribute> &decisions);

/// Gives the images of these groups, all of one block, the order (N, H, W, C). What reads or makes one of
/// them elsewhere gets it by way of a transpose; reductions read them as they are.
void transposeToChannelsLast(mlir::Block &block, llvm::ArrayRef<LayoutGroup> groups);

/// Whether the reduction of an image folds all but its channels, which transposeToChannelsLast() does in two.
bool foldsAllButChannels(mlir::Operation *reduction);

} // namespace gpuc
