// The host's convolution of one tap by strides: the pixels that it reads are copied to where they adjoin, and
// what is left is a convolution without strides. Likewise x's cotangent is spread from there. Where
// takesPixelsByTile() says so, they are not copied but taken by the tiles.
#pragma once

#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// By the shape alone; numbers are measured (bench-conv): on 4x4 and 2x2 pixels it takes 1.15 to 1.4 times as
/// long. Windows lie within the image.
constexpr bool paysSubsampled(const ConvShape& s) {
  constexpr int64_t kLeastChannels = 32, kFewPixels = 16;
  auto within = [](const ConvAxis& axis) {
    return axis.low == 0 && (axis.output - 1) * axis.stride < axis.input;
  };
  return s.taps() == 1 && !s.isPointwise() && s.outputPixels() > kFewPixels && within(s.height) &&
         within(s.width) && s.groupInputs() >= kLeastChannels && s.groupOutputs() >= kLeastChannels;
}

/// What is left: of the pixels that are read alone. x's cotangent is masked as it is spread.
constexpr ConvShape subsampledShape(const ConvShape& s) {
  ConvShape left = s;
  for (ConvAxis ConvShape::* axis : {&ConvShape::height, &ConvShape::width}) {
    ConvAxis& to = left.*axis;
    to = {.input = to.output, .output = to.output};
  }
  left.mask = false;
  return left;
}

/// Of those pixels in the workspace, in front of what is left to do with them; whole lines of the cache.
constexpr int64_t subsampledBytes(const ConvShape& s) {
  return (s.batch * s.in_channels * s.outputPixels() * sizeOf(s.type) + 63) / 64 * 64;
}

}  // namespace gpuc
