// How the host computes a convolution, as far as the compiler must know it: by which method, how a filter's
// gradient is cut, and the workspace to reserve for it in the plan. All of it follows from the shape alone.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_method.h"
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

/// Whether the pixels that one tap by strides reads are taken by the tile that multiplies them, since no
/// other needs them: forward where the filter stays in the second-level cache, so that a tile has all
/// outputs; of the filter's gradient where x is transposed, and all outputs are one tile's. Else, and where
/// there are so few that a tile has fewer outputs, they pass through the workspace, as x's cotangent does.
constexpr bool takesPixelsByTile(const ConvShape& s) {
  constexpr int64_t kFilterBytes = 512 * 1024, kManyPixels = 2048;
  if (s.taps() > 1 || !paysSubsampled(s) || s.batch * s.outputPixels() < kManyPixels) return false;
  const ConvShape left = subsampledShape(s);
  if (convMethod(left) != ConvMethod::patches) return false;
  if (s.kind == ConvKind::forward)
    return s.groupOutputs() * s.groupInputs() * sizeOf(computedType(s.type)) <= kFilterBytes;
  const FilterGradientCut cut = cutFilterGradient(left);
  return s.kind == ConvKind::filter_gradient && cut.exchanged && cut.row_blocks == 1;
}

/// Elements of the filter as f32 in the workspace, with what comes before the next cache line; 0 if it is
/// read where it lies.
constexpr int64_t convWidenedFilter(const ConvShape& shape) {
  const bool widens = computedType(shape.type) != shape.type && shape.kind != ConvKind::filter_gradient &&
                      !paysByChannels(shape);
  return widens ? (shape.filterElements() + 15) / 16 * 16 : 0;
}

/// Parts of a filter's gradient in the workspace; 0 if it is summed up where it lies.
constexpr int64_t convFilterParts(const ConvShape& shape) {
  if (shape.kind != ConvKind::filter_gradient) return 0;
  const ConvMethod method = convMethod(shape);
  const bool direct = method != ConvMethod::patches;
  const int64_t parts = method == ConvMethod::depthwise ? cutDepthwise(shape).parts
                        : direct                        ? cutDirect(shape, method).parts
                                                        : cutFilterGradient(shape).parts;
  const bool rounds = direct && computedType(shape.type) != shape.type;
  return parts == 1 && !rounds ? 0 : parts;
}

/// Elements of a filter's gradient whose parts one tile adds up: whole rows, where they are not too long.
constexpr int64_t convSumElements(const ConvShape& shape) {
  constexpr int64_t kMost = 4096;
  return shape.patchRows() > kMost ? kMost : kMost / shape.patchRows() * shape.patchRows();
}

/// Bytes of workspace that the host's convolution of this shape needs: the parts of a filter's gradient, if
/// there are several; of f16 and bf16 the filter as f32, and the input's gradient in f32, to which each tap
/// is added (a pointwise one is made block by block, and the direct method adds up in registers). What else
/// is packed lies on the stack of the thread that computes a tile. By channels: pictures, packed once.
/// Subsampled: the pixels, unless tiles take them, and what the convolution without strides needs.
constexpr int64_t convWorkspaceBytes(const ConvShape& shape) {
  if (paysSubsampled(shape))
    return (takesPixelsByTile(shape) ? 0 : subsampledBytes(shape)) +
           convWorkspaceBytes(subsampledShape(shape));
  if (paysByChannels(shape)) return channelsWorkspaceElements(shape) * sizeOf(computedType(shape.type));
  int64_t elements = convFilterParts(shape) * shape.filterElements();
  if (const int64_t filter = convWidenedFilter(shape); filter > 0) {
    const bool added = shape.kind == ConvKind::input_gradient && !shape.isPointwise() &&
                       !spreadsPixels(shape) && convMethod(shape) == ConvMethod::patches;
    elements += filter + (added ? shape.inputElements() : 0);
  }
  return elements * sizeOf(computedType(shape.type));
}

}  // namespace gpuc
