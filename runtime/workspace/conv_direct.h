// The methods of the host's convolution, and how the direct ones cut a shape.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// patches: blocks of the matrix of patches are packed for LIBXSMM's products. Each element of an image is
///   copied once for every tap, which pays where many outputs read the copy.
/// by_rows: an image is packed once, with its padding, and vectors run along its rows.
/// by_outputs: as by_rows, of the filter's gradient; vectors run along the outputs.
/// by_images: forward and the input's gradient; vectors run along the images of the batch.
/// by_channels: products of pixels, tap by tap; vectors run along the channels (conv_channels.h).
/// subsampled: one tap by strides, as a convolution without them (conv_subsampled.h).
/// depthwise: nothing is packed; vectors run along the rows (conv_depthwise.h).
/// winograd: of 3x3 taps; fewer products, of sums of pixels (conv_winograd.h).
enum class ConvMethod : uint8_t {
  patches,
  by_rows,
  by_outputs,
  by_images,
  by_channels,
  subsampled,
  depthwise,
  winograd
};

/// The most bytes of packed images that one tile of the direct methods holds, of packed cotangents, and of
/// sums between some channels and the next.
inline constexpr int64_t kDirectPackedBytes = 64 * 1024;

/// The most outputs that are packed side by side by by_outputs: two vectors of the widest kind.
constexpr int64_t mostPackedOutputs(const ConvShape& shape) { return 128 / sizeOf(computedType(shape.type)); }

/// How the direct method cuts a convolution. A tile of forward and of the input's gradient is a strip of rows
/// of one image; of the filter's gradient it is one of `parts` of all chunks, each some images' strip.
struct DirectCut {
  int64_t row_phases, column_phases;  // an image is packed as this many, so that strides become 1
  int64_t column_step;                // the stride that columns are packed by; by_outputs 1, and lanes stride
  int64_t row_stride;                 // elements of a packed row
  int64_t more_rows;                  // packed rows of a strip beyond those of its result
  int64_t channels;                   // packed at once
  int64_t strip_rows, strips;
  int64_t images, chunks, parts;  // filter_gradient

  constexpr int64_t packedElements(int64_t rows) const {
    return channels * row_phases * column_phases * (rows + more_rows) * row_stride;
  }
};

/// Strips of all channels that are lower than this pack most rows again for the next one.
inline constexpr int64_t kLeastStripRows = 4;

/// Rows of a strip whose packed image fits; below 1 if not even one does.
constexpr int64_t rowsThatFit(const DirectCut& cut, int64_t element_bytes) {
  const int64_t row_bytes = (cut.packedElements(1) - cut.packedElements(0)) * element_bytes;
  return kDirectPackedBytes / row_bytes - cut.more_rows;
}

/// By rows: channels that are packed at once, so that the strips are not too low.
constexpr int64_t channelsAtOnce(const ConvShape& s, const DirectCut& cut, int64_t rows) {
  constexpr int64_t kWantedRows = 8;
  const int64_t wanted = std::min(kWantedRows, s.height.output);
  if (rows >= std::min(kLeastStripRows, s.height.output)) return cut.channels;
  const int64_t bytes = sizeOf(computedType(s.type));
  const int64_t fitting = kDirectPackedBytes / (cut.packedElements(wanted) / cut.channels * bytes);
  return std::clamp<int64_t>(fitting, 1, cut.channels);
}

/// Rows of a strip, before they are made even.
constexpr int64_t mostStripRows(const ConvShape& s, const DirectCut& cut, ConvMethod method) {
  constexpr int64_t kFewTiles = 32, kTileFlops = 1 << 20;
  const int64_t bytes = sizeOf(computedType(s.type));
  int64_t rows = rowsThatFit(cut, bytes);
  if (s.kind != ConvKind::filter_gradient && cut.channels < s.groupInputs())
    rows = std::min(rows, kDirectPackedBytes / (s.groupOutputs() * s.width.output * bytes));
  if (method == ConvMethod::by_outputs)
    rows = std::min(rows, kDirectPackedBytes / (mostPackedOutputs(s) * bytes) / s.width.output);
  else if (s.kind != ConvKind::filter_gradient && s.batch * s.groups < kFewTiles)
    // Few images: strips of some 10 us each, for other threads.
    rows = std::min(
        rows, std::max<int64_t>(4, kTileFlops / (2 * s.width.output * s.groupOutputs() * s.patchRows())));
  return std::clamp<int64_t>(rows, 1, s.height.output);
}

/// For one of the direct methods.
constexpr DirectCut cutDirect(const ConvShape& shape, ConvMethod method) {
  constexpr int64_t kWantedTiles = 32, kChunkBytes = 32 * 1024;
  const ConvShape s = correlationOf(shape);
  const int64_t bytes = sizeOf(computedType(s.type)), lanes = 64 / bytes;
  const int64_t row_span = (s.height.kernel - 1) * s.height.dilation;
  const int64_t column_span = (s.width.kernel - 1) * s.width.dilation;
  DirectCut cut{};
  cut.row_phases = std::min(s.height.stride, row_span + 1);
  cut.column_step = method == ConvMethod::by_outputs ? 1 : s.width.stride;
  cut.column_phases = std::min(cut.column_step, column_span + 1);
  const int64_t columns = (s.width.output - 1) * (s.width.stride / cut.column_step) + 1;
  cut.row_stride = (columns + lanes - 1) / lanes * lanes + (column_span / cut.column_step + 3) / 4 * 4;
  cut.more_rows = row_span / s.height.stride;

  cut.channels = s.groupInputs();
  if (method == ConvMethod::by_rows) cut.channels = channelsAtOnce(s, cut, rowsThatFit(cut, bytes));
  const int64_t rows = mostStripRows(s, cut, method);
  cut.strips = (s.height.output + rows - 1) / rows;
  cut.strip_rows = (s.height.output + cut.strips - 1) / cut.strips;
  cut.strips = (s.height.output + cut.strip_rows - 1) / cut.strip_rows;

  int64_t fitting = kChunkBytes / (cut.packedElements(cut.strip_rows) * bytes);
  if (method == ConvMethod::by_outputs)
    fitting = std::min(fitting, kDirectPackedBytes / (mostPackedOutputs(s) * bytes) / s.outputPixels());
  cut.images = cut.strips > 1 ? 1 : std::max<int64_t>(1, std::min(s.batch / 8, fitting));
  cut.chunks = (s.batch + cut.images - 1) / cut.images * cut.strips;
  cut.parts = std::min(cut.chunks, (kWantedTiles + s.groups - 1) / s.groups);
  return cut;
}

/// Whether no number is so large that the products of cutDirect could exceed 64 bits, or the tables of taps
/// would be long.
constexpr bool isModest(const ConvShape& s) {
  constexpr int64_t kMostTaps = 256, kMostStride = 16, kMostExtent = 1 << 14;
  bool modest = s.taps() <= kMostTaps && s.groupInputs() <= kMostExtent && s.groupOutputs() <= kMostExtent &&
                s.width.output <= kMostExtent && s.width.input <= kMostExtent;
  for (const ConvAxis* axis : {&s.height, &s.width})
    modest = modest && axis->stride <= kMostStride && (axis->kernel - 1) * axis->dilation <= kMostExtent;
  return modest;
}

/// Whether what a tile packs fits.
constexpr bool fitsDirect(const ConvShape& shape, ConvMethod method) {
  if (!isModest(shape)) return false;
  const ConvShape s = correlationOf(shape);
  const DirectCut cut = cutDirect(shape, method);
  const int64_t bytes = sizeOf(computedType(s.type));
  if (cut.packedElements(cut.strip_rows) * bytes > kDirectPackedBytes) return false;
  const int64_t sums = s.groupOutputs() * cut.strip_rows * s.width.output;
  if (shape.kind != ConvKind::filter_gradient && cut.channels < s.groupInputs() &&
      sums * bytes > kDirectPackedBytes)
    return false;
  return method == ConvMethod::by_rows ||
         cut.strip_rows * s.width.output * mostPackedOutputs(s) * bytes <= kDirectPackedBytes;
}

/// The most bytes of packed images that one tile holds, and of sums before they are put where they belong.
inline constexpr int64_t kImagesPackedBytes = 192 * 1024;
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

/// strip_rows is 0 if not even one row fits, for which there is room where several do not.
constexpr ImagesCut cutImages(const ConvShape& s) {
  constexpr int64_t kSeveralRowsBytes = 128 * 1024, kWantedTiles = 8, kLeastRows = 4, kMostOutputs = 8;
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
    return rowsRead(s.height, rows) * row_bytes <= (rows > 1 ? kSeveralRowsBytes : kImagesPackedBytes) &&
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
