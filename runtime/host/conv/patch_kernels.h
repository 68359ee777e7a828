// The matrix of patches, a block at a time: a convolution is a matrix product with it.
#pragma once

#include <cstdint>

#include "runtime/host/conv/direct.h"
#include "runtime/host/conv/images.h"
#include "runtime/host/matmul/element.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// A block of the matrix of patches of one image and one group. Its rows are (channel, i, j), one for each
/// element that an output reads; its columns are the output's pixels. Element [(c, i, j), (p, q)] is the
/// image's element [c, p·sh - top + i·dh, q·sw - left + j·dw], or 0 outside.
struct PatchBlock {
  const ConvAxis* height;
  const ConvAxis* width;
  const ValidRange* valid_rows;     // [kernel height], of p
  const ValidRange* valid_columns;  // [kernel width], of q
  int64_t row, rows;
  int64_t pixel, pixels;
  int64_t stride;  // elements from one row of the block to the next
};

/// S is the type in memory; patches are in that of the arithmetic.
template <typename S>
struct TypedPatchKernels {
  /// patches = block of the matrix of `image`, which begins at the group's first channel.
  void (*gather)(const PatchBlock& block, const S* image, Computed<S>* patches);
  /// Adds each element of the block to the image's element that it stands for, row by row. What stands for
  /// none may be overwritten.
  void (*scatter)(const PatchBlock& block, Computed<S>* patches, Computed<S>* image);
  TypedDirectKernels<S> direct;
  TypedImageKernels<S> images;
};

struct PatchKernelTable {
  TypedPatchKernels<float> f32;
  TypedPatchKernels<double> f64;
  TypedPatchKernels<Half> f16;
  TypedPatchKernels<Bfloat16> bf16;

  template <typename S>
  const TypedPatchKernels<S>& of() const;
};

template <>
inline const TypedPatchKernels<float>& PatchKernelTable::of<float>() const {
  return f32;
}
template <>
inline const TypedPatchKernels<double>& PatchKernelTable::of<double>() const {
  return f64;
}
template <>
inline const TypedPatchKernels<Half>& PatchKernelTable::of<Half>() const {
  return f16;
}
template <>
inline const TypedPatchKernels<Bfloat16>& PatchKernelTable::of<Bfloat16>() const {
  return bf16;
}

/// The kernels for the widest vectors that both this CPU has and `most_vector_bytes` allows. Never null.
const PatchKernelTable* patchKernels(int most_vector_bytes);

}  // namespace gpuc
