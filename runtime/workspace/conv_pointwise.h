// The host's convolution of one tap at the pixel itself. Of small pictures the pixels of some images lie side
// by side in a product, which is long enough then; and by rows the filter's gradient is summed up along
// pixels.
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

/// How the filter's gradient is cut by rows: lanes run along the pixels of a picture. Of x and dy the one
/// with fewer channels is packed, a chunk at a time: a run of one picture's pixels, or all pixels of some
/// pictures.
struct PixelRowsCut {
  int64_t few, many;      // channels of a group
  bool few_inputs;        // the few are x's
  int64_t run, runs;      // pixels of a chunk's picture, and how many such runs that has
  int64_t row;            // elements of such a run as it is packed
  int64_t images;         // of a chunk
  int64_t chunks, parts;  // of the sum, which are added up in order
};

/// What a tile packs at once: half of it, of few channels, leaves room for others in the second-level cache.
inline constexpr int64_t kPixelRowsBytes = 64 * 1024;

/// Of so few channels that runs are long: the lanes of each are added up in the end.
constexpr bool fitsPixelRows(const ConvShape& s) {
  constexpr int64_t kMostFew = 64, kMostElements = int64_t{1} << 30;
  const double largest = static_cast<double>(std::max(s.groupInputs(), s.groupOutputs())) *
                         static_cast<double>(s.outputPixels());
  return s.kind == ConvKind::filter_gradient && s.isPointwise() &&
         std::min(s.groupInputs(), s.groupOutputs()) <= kMostFew && largest < kMostElements;
}

constexpr PixelRowsCut cutPixelRows(const ConvShape& s) {
  constexpr int64_t kRunBytes = 2048, kWantedTiles = 32;
  const int64_t bytes = sizeOf(computedType(s.type)), lanes = 64 / bytes, pixels = s.outputPixels();
  PixelRowsCut cut{};
  cut.few_inputs = s.groupInputs() < s.groupOutputs();
  cut.few = std::min(s.groupInputs(), s.groupOutputs());
  cut.many = std::max(s.groupInputs(), s.groupOutputs());
  const int64_t fitting = kPixelRowsBytes / (cut.few * bytes) / lanes * lanes - lanes;
  cut.run = evenConvPart(pixels, std::min(fitting, kRunBytes / bytes), lanes);
  cut.runs = (pixels + cut.run - 1) / cut.run;
  // A line more, lest rows share few sets of the first-level cache.
  cut.row = ceilToMultiple(cut.run, lanes) + lanes;
  const int64_t together = std::min(s.batch / 8, kPixelRowsBytes / (cut.few * cut.row * bytes));
  cut.images = cut.runs > 1 ? 1 : std::max<int64_t>(1, together);
  cut.chunks = (s.batch + cut.images - 1) / cut.images * cut.runs;
  cut.parts = std::min(cut.chunks, (kWantedTiles + s.groups - 1) / s.groups);
  return cut;
}

}  // namespace gpuc
