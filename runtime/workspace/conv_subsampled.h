// The host's convolution of windows that share no pixel, of one tap by strides, or as large as the strides:
// the pixels that it reads are copied to where they adjoin, each tap's as channels of its own, and what is
// left is a convolution of one tap without strides. Likewise x's cotangent is spread from there. Where
// takesPixelsByTile() says so, they are not copied but taken by the tiles.
#pragma once

#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// Whether windows lie within the image; of several taps one beside the other, so that none shares a pixel.
constexpr bool isOfOwnPixels(const ConvAxis& axis, bool has_taps) {
  const bool adjoins = axis.kernel == axis.stride && axis.dilation == 1;
  return axis.low == 0 && (!has_taps || adjoins) &&
         (axis.output - 1) * axis.stride + axis.kernel <= axis.input;
}

/// Whether it can be computed so: several taps of few inputs, as those of a vision transformer's patches, and
/// not x's cotangent, that of what a network reads, which is not wanted. Few pixels are not brought together
/// twice.
constexpr bool fitsSubsampled(const ConvShape& s) {
  constexpr int64_t kFewInputs = 8, kManyTaps = 16, kFewPixels = 16;
  const bool has_taps = s.taps() > 1;
  if (s.isPointwise() || s.outputPixels() <= kFewPixels || !isOfOwnPixels(s.height, has_taps) ||
      !isOfOwnPixels(s.width, has_taps))
    return false;
  return !has_taps ||
         (s.kind != ConvKind::input_gradient && s.groupInputs() < kFewInputs && s.taps() >= kManyTaps);
}

/// What is left: of the pixels that are read alone. x's cotangent is masked as it is spread.
constexpr ConvShape subsampledShape(const ConvShape& s) {
  ConvShape left = s;
  left.in_channels *= s.taps();
  for (ConvAxis ConvShape::* axis : {&ConvShape::height, &ConvShape::width}) {
    ConvAxis& to = left.*axis;
    to = {.input = to.output, .output = to.output};
  }
  left.mask = false;
  return left;
}

/// Of those pixels in the workspace, in front of what is left to do with them; whole lines of the cache.
constexpr int64_t subsampledBytes(const ConvShape& s) {
  return (s.batch * s.in_channels * s.taps() * s.outputPixels() * sizeOf(s.type) + 63) / 64 * 64;
}

}  // namespace gpuc
