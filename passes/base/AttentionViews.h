//===- AttentionViews.h - Which attention stays whole, and what it reads -----===//
//
// A library's attention reads and writes heads through strides. So the transposes, slices and reshapes that
// cut a projection [B, T, H · D] into heads [B, H, T, D] need not move anything: gpuc-fuse leaves them
// outside of kernels, and gpuc-to-plan makes strides of them. Nor need the cotangents of queries, keys and
// values be put together: the gradient writes them side by side, if a concat is all that reads them. On CUDA
// they stand in attention's own kernel, and the code generator does.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "runtime/workspace/attention_shape.h"

namespace gpuc {

/// True of attention and its gradient.
bool isAttention(mlir::Operation *op);

/// Whether the host's library computes the op (attention or its gradient) whole where it stands.
bool hasHostAttention(mlir::Operation *op);

/// The same of attention in any type: `gpuc-decompose` has the host compute 16 bits as f32.
bool hasHostAttentionOfAnyType(ir::AttentionOp attention);

/// Widths of heads up to this are computed on CUDA: a thread holds its part of a row in registers.
inline constexpr int64_t kMostCudaAttentionWidth = 128;

/// Whether the compiler makes CUDA kernels of the op (AttentionKernels.h) where it stands.
bool hasCudaAttention(mlir::Operation *op);

/// Of an op with static shapes; its layouts are left open. What is not f64 counts as f32.
AttentionShape attentionShapeOf(ir::AttentionOp attention);
AttentionShape attentionShapeOf(ir::AttentionGradientOp gradient);

/// Whether the op is attention that reads the variables @seed and @step, as dropout does, without a
/// gpuc.read.
bool dropsByCounters(mlir::Operation *op);

/// Where the elements of a tensor lie among those of another one, its base, which has no gaps.
struct StridedView {
  mlir::Value base;
  int64_t offset = 0;                    ///< Elements before the first.
  llvm::SmallVector<int64_t, 4> strides; ///< In elements, for each dimension of the tensor.
};

/// `value` as a view of what its transposes, slices and reshapes lead back to; of itself if strides cannot
/// tell where its elements lie. A result of attention is a view of what it is written into.
StridedView viewOf(mlir::Value value);

/// Whether attention can read or write heads of this shape that lie so.
bool isReadable(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

/// Whether attention reads this operand through strides: all but logarithms and mask.
bool isReadStrided(mlir::OpOperand &operand);

/// A transpose, slice or reshape that nobody reads but attention, through strides.
bool isAttentionView(mlir::Operation *op);

/// The one op other than attention that reads this result of attention, if it is a transpose in whose order
/// the result can be written; else null. Such a result is a view of the transpose's.
ir::TransposeOp transposeOfResult(mlir::OpResult result);

/// The one concat that this result of attention's gradient ends in, if all of its operands are results of
/// that gradient, which nothing but transposes and reshapes has moved; else null. They are views of it: the
/// host's library writes them side by side.
ir::ConcatOp concatOfResult(mlir::OpResult result);

/// Whether the op stands between a result of attention and what that is written into, or is the latter.
bool isResultView(mlir::Operation *op);

} // namespace gpuc
