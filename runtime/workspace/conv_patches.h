// How the host cuts a filter's gradient by patches.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_pointwise.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// How the filter's gradient is cut, by the shape alone. A tile sums up `rows` x `outputs` elements of one
/// group over one part of all blocks of `pixels` output pixels; the parts' sums are then added up in order.
struct FilterGradientCut {
  bool exchanged;  // pointwise, with more outputs than inputs: these are `outputs`, and the outputs `rows`
  int64_t rows, outputs, pixels;
  int64_t rows_at_once;  // of a tile's, in one product
  int64_t images;  // whose pixels are added up as one block; pixel_blocks are of one image, or of the batch
  int64_t row_blocks, output_blocks, pixel_blocks;
  int64_t parts;
};

/// A pointwise filter's gradient reads so much of a channel at once, since memory is quicker at long runs:
/// 64 to 256 channels on 56x56 take 1.6 times as long with 512 bytes.
inline constexpr int64_t kFilterRunBytes = 2048;

constexpr FilterGradientCut cutFilterGradient(const ConvShape& shape) {
  // 144 is nine taps of 16 channels; the three blocks of a tile take up to 328 KiB of stack. A
  // pointwise one has the picture in the place of patches, and more rows share what is transposed, which is
  // the one of picture and cotangent with fewer channels.
  constexpr int64_t kRows = 144, kPointwiseRows = 256, kOutputs = 64, kPixelBytes = 512, kWantedTiles = 32,
                    kLeastPixels = 512, kPackedBytes = 128 * 1024;
  FilterGradientCut cut{};
  cut.exchanged = shape.isPointwise() && shape.groupOutputs() > shape.groupInputs();
  const int64_t all_rows = cut.exchanged ? shape.groupOutputs() : shape.patchRows();
  const int64_t all_outputs = cut.exchanged ? shape.groupInputs() : shape.groupOutputs();
  cut.images = adjoiningImages(shape);
  const bool some_images = cut.images > 1;
  const int64_t bytes = sizeOf(computedType(shape.type));
  cut.outputs = evenConvPart(all_outputs, kOutputs, 16);
  const int64_t most_pixels = (shape.isPointwise() ? kFilterRunBytes : kPixelBytes) / bytes;
  cut.pixels =
      some_images ? cut.images * shape.outputPixels() : evenConvPart(shape.outputPixels(), most_pixels, 16);
  cut.rows = evenConvPart(all_rows, shape.isPointwise() ? kPointwiseRows : kRows, 16);
  // As many as there is room for where they are widened.
  int64_t fitting = kPointwiseRows;
  while (shape.isPointwise() && fitting * ceilToMultiple(cut.pixels, 16) * bytes > kPackedBytes) fitting /= 2;
  cut.rows_at_once = std::min(cut.rows, fitting);
  cut.rows = ceilToMultiple(cut.rows, cut.rows_at_once);
  cut.row_blocks = (all_rows + cut.rows - 1) / cut.rows;
  cut.output_blocks = (all_outputs + cut.outputs - 1) / cut.outputs;
  const int64_t summands = (some_images ? shape.batch : 1) * shape.outputPixels();
  cut.pixel_blocks = (summands + cut.pixels - 1) / cut.pixels;
  const int64_t tiles = shape.groups * cut.row_blocks * cut.output_blocks;
  const int64_t blocks = (some_images ? 1 : shape.batch) * cut.pixel_blocks;
  cut.parts = std::min(blocks, (kWantedTiles + tiles - 1) / tiles);
  if (isSmallPointwise(shape))
    cut.parts = std::min(cut.parts, std::max<int64_t>(1, blocks * cut.pixels / kLeastPixels));
  return cut;
}

}  // namespace gpuc
