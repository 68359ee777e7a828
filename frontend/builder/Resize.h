//===- Resize.h - Pictures in other sizes -------------------------------------===//
#pragma once

#include "frontend/builder/Tensor.h"

namespace gpuc::nn {

enum class Interpolation {
  nearest, ///< The pixel at ⌊i · in / out⌋, as PyTorch's mode="nearest".
  linear,  ///< Between the two nearest, as PyTorch's mode="bilinear" and, of one dimension, "linear".
};

/// x [batch, channels, …]: the dimensions from the third on become `extents`, as PyTorch's interpolate. With
/// `alignCorners` (linear alone) the outermost pixels' centres stay outermost; else their edges do.
Tensor resize(const Tensor &x, const Shape &extents, Interpolation interpolation = Interpolation::nearest,
              bool alignCorners = false);

} // namespace gpuc::nn
