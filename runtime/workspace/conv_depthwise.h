// The host's depthwise convolution: for which shapes it is taken, and how those are cut.
//
// A filter that meets one channel alone has little to multiply: pictures are read where they lie, row by row,
// and all that is added up stays in registers.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// A tile computes the planes of some channels: of the result's in one image, or of the filter's gradient
/// over one of `parts` of all images.
struct DepthwiseCut {
  int64_t channels, blocks;  // of the input; the last block may have fewer
  int64_t planes;            // of them at once, so that they stay in the first-level cache,
  int64_t rows;              // and so many rows of y, or of x's cotangent
  int64_t images;            // of a tile, but for those of filter_gradient
  int64_t parts;             // filter_gradient
};

/// Of the pictures that are read and written at once, if of 16 bits as f32; and of the sums of a filter's
/// gradient, each a vector.
inline constexpr int64_t kDepthwiseStripBytes = 32 * 1024, kDepthwiseSumBytes = 24 * 1024;

/// Planes of large filters that a kernel has a channel of in each lane
/// (runtime/host/conv/depthwise/channel_lanes.h), the most pixels of one, and room for their sums.
inline constexpr int64_t kDepthwiseLanes = 16, kMostDepthwiseLanePixels = 256;
inline constexpr int64_t kDepthwiseLaneSumBytes = kDepthwiseLanes * 64 * 7 * 7;

/// On rows of so many pixels; of 5x5 by strides of one on 14 pixels all is as quick with lanes along a row,
/// and so are sums where the second one says so.
constexpr bool hasLaneColumns(int64_t kernel, int64_t stride, int64_t columns) {
  if (stride == 2) return kernel == 5 && columns == 14;
  return (kernel >= 5 && columns == 7) || (kernel == 7 && columns == 14);
}
constexpr bool sumsHaveLaneColumns(int64_t kernel, int64_t stride, int64_t columns) {
  return hasLaneColumns(kernel, stride, columns) && (stride == 2 || (kernel == 7 && columns == 7));
}
constexpr bool fitsLanePixels(int64_t pixels) {
  return pixels >= kDepthwiseLanes && pixels <= kMostDepthwiseLanePixels;
}
constexpr bool fitsDepthwiseLanes(const ConvShape& s) {
  return computedType(s.type) == DataType::f32 && s.groups >= kDepthwiseLanes && s.groupOutputs() == 1 &&
         hasLaneColumns(s.width.kernel, s.width.stride, s.width.input) && s.width.low == s.width.kernel / 2 &&
         s.width.output == (s.width.input + s.width.stride - 1) / s.width.stride &&
         fitsLanePixels(s.inputPixels()) && fitsLanePixels(s.outputPixels());
}

/// The widest rows.
inline constexpr int64_t kMostDepthwiseColumns = 512;

/// Rows of the one that so many rows of the other meet: of what is read by what is computed, of x by y.
constexpr int64_t depthwiseRowsRead(const ConvShape& s, int64_t rows) {
  if (s.kind == ConvKind::input_gradient)
    return std::min(s.height.output, (rows + s.height.kernel - 2) / s.height.stride + 1);
  return std::min(s.height.input, (rows - 1) * s.height.stride + s.height.kernel);
}

constexpr DepthwiseCut cutDepthwise(const ConvShape& s) {
  constexpr int64_t kWantedTiles = 32, kFewRows = 16, kTileElements = 32 * 1024;
  constexpr int64_t kFewPixels = 16, kImages = 4, kFewLanePixels = 16 * 16;
  const bool to_input = s.kind == ConvKind::input_gradient;
  const int64_t bytes = sizeOf(computedType(s.type)), outputs = s.groupOutputs();
  const int64_t all_rows = to_input ? s.height.input : s.height.output;
  auto strip = [&](int64_t rows) {
    const int64_t read = depthwiseRowsRead(s, rows);
    return bytes * (to_input ? rows * s.width.input + outputs * read * s.width.output
                             : read * s.width.input + outputs * rows * s.width.output);
  };
  DepthwiseCut cut{};
  cut.rows = all_rows;
  while (cut.rows > kFewRows && strip(cut.rows) > kDepthwiseStripBytes) cut.rows = (cut.rows + 1) / 2;
  const int64_t elements = s.inputPixels() + outputs * s.outputPixels();
  cut.planes = std::clamp<int64_t>(kDepthwiseStripBytes / strip(cut.rows), 1, s.groups);
  const bool to_filter = s.kind == ConvKind::filter_gradient;
  // Some images share what is done to the filter, if that is much beside what is done to a plane.
  const bool is_small = s.taps() <= kFewPixels && s.inputPixels() <= kFewPixels;
  const bool in_lanes =
      fitsDepthwiseLanes(s) && sumsHaveLaneColumns(s.width.kernel, s.width.stride, s.width.input);
  cut.images = !to_filter && (is_small || in_lanes) ? std::min(s.batch, kImages) : 1;
  cut.channels = std::clamp<int64_t>(kTileElements / (elements * cut.images), cut.planes, s.groups);
  // Some planes at once are one vector, or some vectors.
  const int64_t together = fitsDepthwiseLanes(s) ? kDepthwiseLanes : s.taps() == 9 ? 4 : 2;
  if (to_filter) {
    const int64_t most = std::max<int64_t>(fitsDepthwiseLanes(s) ? kDepthwiseLanes : 1,
                                           kDepthwiseSumBytes / (64 * outputs * s.taps()));
    // Channels lie side by side, images far apart: as many in turn as leave tiles enough. Of few pixels sums
    // take long beside products: those of all images in turn.
    if (s.outputPixels() > kFewLanePixels)
      cut.channels = std::max(cut.channels, s.groups * s.batch / kWantedTiles);
    else
      cut.channels = std::min(cut.channels, (s.groups / kWantedTiles + together) / together * together);
    cut.channels = std::min({cut.channels, most, s.groups}), cut.planes = std::min(cut.planes, cut.channels);
  }
  const int64_t at_once = cut.planes >= together ? together : 2;
  if (cut.planes > 1) cut.planes -= cut.planes % at_once;
  if (cut.channels < s.groups) cut.channels -= cut.channels % cut.planes;
  cut.blocks = (s.groups + cut.channels - 1) / cut.channels;
  // Fewer tiles rather than more: each part's sums are added up by themselves.
  cut.parts = std::clamp<int64_t>(kWantedTiles / cut.blocks, 1, s.batch);
  return cut;
}

/// Whether there are kernels for it, which nothing else comes near (bench-conv).
constexpr bool fitsDepthwise(const ConvShape& s) {
  constexpr int64_t kMostOutputs = 4, kMostWritten = 1024;
  const ConvAxis &height = s.height, &width = s.width;
  const int64_t most_outputs = s.kind == ConvKind::input_gradient ? 1 : kMostOutputs;
  return s.groups > 1 && s.groupInputs() == 1 && s.groupOutputs() <= most_outputs &&
         height.kernel == width.kernel && (width.kernel == 3 || width.kernel == 5 || width.kernel == 7) &&
         height.stride == width.stride && width.stride <= 2 && height.dilation == 1 && width.dilation == 1 &&
         width.input <= kMostDepthwiseColumns && width.output <= kMostDepthwiseColumns &&
         s.groupOutputs() * width.output <= kMostWritten;
}

}  // namespace gpuc
