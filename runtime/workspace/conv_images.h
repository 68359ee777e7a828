// The host's convolution with an image in each lane: for which shapes it is taken, and how they are cut.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// The most bytes of packed images that one tile holds, and of sums before they are put where they belong.
inline constexpr int64_t kImagesPackedBytes = 128 * 1024;
inline constexpr int64_t kImagesSumBytes = 64 * 1024;

/// Images side by side: a vector of the widest kind. `shape` is of the type of the arithmetic.
constexpr int64_t imageLanes(const ConvShape& shape) { return 64 / sizeOf(computedType(shape.type)); }

/// How a correlation (see correlationOf) is cut. A tile is a strip of the result's rows of `imageLanes`
/// images. What it reads is packed as [channel][row][column][image], the columns with their padding.
struct ImagesCut {
  int64_t image_groups;  // the last may have fewer images
  int64_t strip_rows, strips;
  int64_t packed_rows;           // the most that a strip reads, padding aside
  int64_t first_column, width;   // what is read of a row of the image
  int64_t left, packed_columns;  // zeros before it, and with all zeros
  int64_t outputs;               // summed up before they are put where they belong
};

/// Rows of the image that `rows` rows of the result read at most.
constexpr int64_t rowsRead(const ConvAxis& height, int64_t rows) {
  return std::min(height.input, (rows - 1) * height.stride + (height.kernel - 1) * height.dilation + 1);
}

/// strip_rows is 0 if not even one row fits.
constexpr ImagesCut cutImages(const ConvShape& s) {
  constexpr int64_t kWantedTiles = 8, kLeastRows = 4, kMostOutputs = 8;
  const int64_t lanes = imageLanes(s), pixel_bytes = 64;
  ImagesCut cut{};
  cut.image_groups = (s.batch + lanes - 1) / lanes;
  cut.outputs = std::min(s.groupOutputs(), kMostOutputs);
  const int64_t span = (s.width.output - 1) * s.width.stride + (s.width.kernel - 1) * s.width.dilation + 1;
  cut.left = std::max<int64_t>(s.width.low, 0);
  cut.first_column = cut.left - s.width.low;
  cut.width = s.width.input - cut.first_column;
  cut.packed_columns = std::max(span, cut.left + cut.width);
  const int64_t row_bytes = s.groupInputs() * cut.packed_columns * pixel_bytes;
  auto fits = [&](int64_t rows) {
    return rowsRead(s.height, rows) * row_bytes <= kImagesPackedBytes &&
           cut.outputs * rows * s.width.output * pixel_bytes <= kImagesSumBytes;
  };
  const int64_t wanted = (kWantedTiles + cut.image_groups * s.groups - 1) / (cut.image_groups * s.groups);
  cut.strips = std::min(wanted, (s.height.output + kLeastRows - 1) / kLeastRows);
  cut.strip_rows = (s.height.output + cut.strips - 1) / cut.strips;
  while (cut.strip_rows > 0 && !fits(cut.strip_rows)) --cut.strip_rows;
  if (cut.strip_rows == 0) return cut;
  cut.strips = (s.height.output + cut.strip_rows - 1) / cut.strip_rows;
  cut.packed_rows = rowsRead(s.height, cut.strip_rows);
  return cut;
}

/// Whether the lanes are in use, and what a tile packs fits.
constexpr bool fitsImages(const ConvShape& s) {
  constexpr int64_t kLeastLanesUsed = 75;
  const int64_t lanes = imageLanes(s);
  return 100 * s.batch >= kLeastLanesUsed * ((s.batch + lanes - 1) / lanes * lanes) &&
         cutImages(s).strip_rows > 0;
}

}  // namespace gpuc
