//===- Resize.h - Pictures in other sizes -------------------------------------===//
#pragma once

#include "frontend/builder/Module.h"

namespace gpuc::nn {

enum class Interpolation {
  nearest, ///< The pixel at ⌊i · in / out⌋, as PyTorch's mode="nearest".
  linear,  ///< Between the two nearest, as PyTorch's mode="bilinear" and, of one dimension, "linear".
};

/// x [batch, channels, …]: the dimensions from the third on become `extents`, as PyTorch's interpolate. With
/// `alignCorners` (linear alone) the outermost pixels' centres stay outermost; else their edges do.
Tensor resize(const Tensor &x, const Shape &extents, Interpolation interpolation = Interpolation::nearest,
              bool alignCorners = false);

struct UpsampleOptions {
  // One of the two: a number for each dimension from the third on, or one for all of them.
  Shape size = {};                      ///< Their extents afterwards.
  std::vector<double> scaleFactor = {}; ///< How often larger they become; each by a whole number of pixels.
  Interpolation mode = Interpolation::nearest;
  bool alignCorners = false;
};

/// resize as a layer, PyTorch's Upsample.
class Upsample : public Layer {
public:
  explicit Upsample(UpsampleOptions options) : options_(std::move(options)) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override;

private:
  UpsampleOptions options_;
};

} // namespace gpuc::nn
