// The host's convolution of one tap at the pixel itself, of small pictures: the pixels of some images lie
// side by side in a product, which is long enough then.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// Whether pictures are small and their pixels whole vectors of 64 bytes. Of rows that are not, as of 7x7
/// pixels, each image is multiplied alone, or by channels (paysByPixels).
constexpr bool isSmallPointwise(const ConvShape& s) {
  constexpr int64_t kMostPixels = 128;
  const int64_t lanes = 64 / sizeOf(computedType(s.type)), pixels = s.outputPixels();
  return s.isPointwise() && pixels <= kMostPixels && pixels % lanes == 0 && s.batch * pixels >= 2 * lanes;
}

/// How many images' pixels adjoin in such a product: up to four vectors, in parts of the batch of nearly
/// equal size.
constexpr int64_t adjoiningImages(const ConvShape& s) {
  const int64_t pixels = 4 * 64 / sizeOf(computedType(s.type));
  const int64_t most = std::clamp<int64_t>(pixels / s.outputPixels(), 1, s.batch);
  const int64_t parts = (s.batch + most - 1) / most;
  return isSmallPointwise(s) ? (s.batch + parts - 1) / parts : 1;
}

}  // namespace gpuc
