// The matrix of patches, a block at a time: a convolution is a matrix product with it.
#pragma once

#include <cstdint>

#include "runtime/host/conv/direct.h"
#include "runtime/host/conv/images.h"
#include "runtime/host/matmul/kernel_table.h"
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

using PatchKernelTable = KernelTable<TypedPatchKernels, float, double, Half, Bfloat16>;
template <>
const PatchKernelTable& kernelsOf<PatchKernelTable, 16>();
template <>
const PatchKernelTable& kernelsOf<PatchKernelTable, 32>();
template <>
const PatchKernelTable& kernelsOf<PatchKernelTable, 64>();

}  // namespace gpuc
