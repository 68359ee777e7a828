//===- Images.h - Convolution and pooling for models ------------------------===//
//
// Images are (N, C, H, W), as in PyTorch. What does not fit is the model's error, as in Tensor.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/builder/Tensor.h"

#include <array>

namespace gpuc::nn {

/// Rows, then columns.
using Pair = std::array<int64_t, 2>;
/// Top, bottom, left, right.
using Padding = std::array<int64_t, 4>;

/// The same on both sides.
inline Padding padded(int64_t rows, int64_t columns) { return {rows, rows, columns, columns}; }

struct ConvOptions {
  Pair stride = {1, 1};
  Padding padding = {};
  Pair dilation = {1, 1};
  int64_t groups = 1;
};

/// x (N, C, H, W) with weight (O, C / groups, kh, kw), as torch.nn.functional.conv2d without its bias.
Tensor conv2d(const Tensor &x, const Tensor &weight, const ConvOptions &options = {});

/// x (N, C, H, W) with weight (C, O / groups, kh, kw), as torch.nn.functional.conv_transpose2d without its
/// bias: the gradient of conv2d by its input. `outputPadding` rows and columns are added at bottom and right.
Tensor convTranspose2d(const Tensor &x, const Tensor &weight, const ConvOptions &options = {},
                       Pair outputPadding = {0, 0});

/// x (N, C, L) with weight (O, C / groups, k): conv2d over images of one row.
Tensor conv1d(const Tensor &x, const Tensor &weight, int64_t stride = 1, Pair padding = {0, 0},
              int64_t dilation = 1, int64_t groups = 1);

struct PoolOptions {
  Pair stride = {1, 1};
  Padding padding = {};
  Pair dilation = {1, 1}; ///< maxPool2d only.
};

struct MaxPooled {
  Tensor values;
  Tensor indices; ///< i64: h · W + v of each window's largest element.
};
/// The largest element of each window.
MaxPooled maxPool2d(const Tensor &x, Pair window, const PoolOptions &options);
/// The mean of each window; padding counts as zeros, or not at all.
Tensor avgPool2d(const Tensor &x, Pair window, const PoolOptions &options, bool countIncludePad = true);

/// What PyTorch's ceil_mode adds at bottom and right, so that no element is left out of the last window.
Padding ceilPadding(const Tensor &x, Pair window, const PoolOptions &options);

} // namespace gpuc::nn
