//===- FuseSteps.h - What gpuc-fuse does to a block beside merging kernels ----===//
#pragma once

#include "passes/kernels/FusedKernel.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Whether the op is a product that contracts over one element.
bool contractsOneElement(mlir::Operation *op);

/// Puts a multiplication of broadcasts in the place of each product in `block` that contracts over one
/// element, as the gradient of a weight does when the batch is one row. Kernels then compute it where it is
/// read, instead of reading a matrix that was stored; its squared norm becomes the product of the vectors'.
void multiplyOuterProducts(mlir::Block &block);

/// Whether the op is a cheap one of values that are repeated: computing it anew costs less than reading it.
bool isOuterProduct(mlir::Operation *op);

/// Puts two sums in the place of each in `block` that folds a large tensor to one element: first the parts
/// under each index of its first dimensions, then those. One element is computed by one thread, or by one
/// block of a GPU; parts have all of them at work, each on what it may have computed itself.
void splitLongSums(mlir::Block &block, const TargetDescription &device);

/// The same for sums of many rows to few columns: each column is one block's of a GPU, which has blocks for
/// more.
void splitLongColumns(mlir::Block &block, const TargetDescription &device);

/// Multiplies what all terms of a sum have in common behind it, and has sums that are equal then computed
/// once.
void factorSums(mlir::Block &block);

/// Has the mean over parts, and the sum of squares of what it centres, computed in one sweep over what is in
/// memory instead of two.
void takeMomentsInOneSweep(mlir::Block &block);

/// Takes out ops of kernels whose results nobody reads.
void eraseUnreadKernelOps(mlir::Block &block);

/// Puts a gpuc.fused in the place of each attention of the block that CUDA has kernels for, with the
/// transposes, slices and reshapes that only it sees (AttentionViews.h), and two in the place of each
/// gradient: one that yields the query's cotangent, and one for those of key and value. Dropout's seed and
/// step become the last two arguments.
void buildAttentionKernels(mlir::Block &block, KernelNames &names);

} // namespace gpuc
