// By which method the host computes a convolution: by the shape alone. Numbers are measured (bench-conv).
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_channels.h"
#include "runtime/workspace/conv_depthwise.h"
#include "runtime/workspace/conv_direct.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// Channels that are many: copying patches pays from so many outputs on, channels side by side from so many
/// on either side.
inline constexpr int64_t kManyChannels = 32;

/// How much of `total` lanes there is in whole vectors of 64 bytes, in percent.
constexpr int64_t lanesUsed(int64_t total, const ConvShape& shape) {
  const int64_t lanes = 64 / sizeOf(computedType(shape.type));
  return 100 * total / ((total + lanes - 1) / lanes * lanes);
}

constexpr bool isStrided(const ConvShape& s) { return s.height.stride > 1 || s.width.stride > 1; }

/// Whether the kernels of by_outputs have rows of so many taps: by strides, of few channels, those of stems.
constexpr bool hasRunsOf(int64_t taps, bool is_strided) {
  if (taps == 3 || taps == 5 || taps == 7) return true;
  return is_strided && (taps == 4 || taps == 8 || taps == 11);
}

/// A filter's gradient with an output in each lane: no lanes to add up at the end. Rows, by strides, are each
/// phase's, and their kernels lose less to lanes that are idle.
constexpr bool paysByOutputs(const ConvShape& s) {
  constexpr int64_t kMostInputsByStrides = 7;
  const bool is_strided = isStrided(s);
  const int64_t used = lanesUsed(s.groupOutputs(), s), row_lanes = lanesUsed(s.width.output, s);
  return s.width.dilation == 1 && hasRunsOf(s.width.kernel, is_strided) &&
         s.groupInputs() <= (is_strided ? kMostInputsByStrides : kManyChannels) &&
         (is_strided ? 5 * used > 4 * row_lanes : 2 * used > row_lanes) &&
         fitsDirect(s, ConvMethod::by_outputs);
}

/// With few channels on a side it pays in gradients by strides, unless of 2x2, whose other methods copy
/// strides or lose lanes; else where no more lanes are idle than by the method whose place it takes, whose
/// lanes are images, outputs or a row's pixels.
constexpr bool paysByFewChannels(const ConvShape& shape) {
  constexpr int64_t kFewTaps = 4, kHalf = 50;
  if (shape.taps() == 1) return false;
  const bool is_filter = shape.kind == ConvKind::filter_gradient;
  if (is_filter && !paysByOutputs(shape)) return true;
  if (isStrided(shape) && shape.taps() <= kFewTaps) return false;
  if (isStrided(shape) && shape.kind == ConvKind::input_gradient) return true;
  const ConvShape s = correlationOf(shape);
  const int64_t used = lanesUsed(s.groupOutputs(), s), row_lanes = lanesUsed(s.width.output, s);
  if (is_filter) return used > row_lanes;
  const bool by_images = isModest(s) && fitsImages(s);
  if (used == 100)
    return !by_images || isStrided(s) || std::max(s.groupInputs(), s.groupOutputs()) >= kManyChannels;
  return !by_images && used > (isStrided(s) ? kHalf : row_lanes);
}

/// Groups of four and eight channels, side by side: where images do not fill the lanes, by strides, and on
/// rows of one vector or that leave more lanes idle; for the filter's gradient by strides, and of eight
/// channels, always.
constexpr bool paysByJoinedGroups(const ConvShape& shape) {
  constexpr int64_t kEight = 8, kMostLanesUsed = 75;
  const bool is_filter = shape.kind == ConvKind::filter_gradient;
  if (is_filter && shape.groupInputs() == kEight) return true;
  const ConvShape s = correlationOf(shape);
  const bool may_be_by_images =
      shape.kind == ConvKind::forward || (shape.kind == ConvKind::input_gradient && !isStrided(shape));
  if (may_be_by_images && isModest(s) && fitsImages(s)) return false;
  const int64_t lanes = 64 / sizeOf(computedType(s.type));
  return isStrided(shape) || s.width.output <= lanes || lanesUsed(s.width.output, s) < kMostLanesUsed;
}

/// One tap of pictures whose pixels fill vectors: no picture has to be packed. But with more results than are
/// read and a filter that the second-level cache does not hold, each image would read all of that anew.
constexpr bool paysByPixels(const ConvShape& s) {
  constexpr int64_t kMostLanesUsed = 75, kFilterBytes = 1 << 20;
  const bool to_input = s.kind == ConvKind::input_gradient;
  const int64_t read = to_input ? s.groupOutputs() : s.groupInputs(),
                results = to_input ? s.groupInputs() : s.groupOutputs();
  return s.isPointwise() && s.kind != ConvKind::filter_gradient &&
         lanesUsed(s.outputPixels(), s) >= kMostLanesUsed &&
         (read > results || read * results * sizeOf(computedType(s.type)) <= kFilterBytes);
}

constexpr bool paysByChannels(const ConvShape& shape) {
  constexpr int64_t kLeastChannels = 8, kFewTaps = 4;
  if (joinedGroups(shape) > 1 && shape.taps() > kFewTaps)
    return paysByJoinedGroups(shape) && fitsChannels(shape);
  const int64_t fewest = std::min(shape.groupInputs(), shape.groupOutputs());
  if (fewest < kLeastChannels || !fitsChannels(shape) || paysByPixels(shape)) return false;
  return fewest >= kManyChannels || paysByFewChannels(shape);
}

/// Whether rows of two planes are a vector, for filters of many taps: where the result is as large as the
/// picture (runtime/host/conv/depthwise/vector_blocks.h).
constexpr bool fillsPairs(const ConvShape& shape) {
  constexpr int64_t kQuarter = 25, kFewRows = 4;
  auto isKept = [](const ConvAxis& axis) { return axis.input == axis.output && axis.low == axis.kernel / 2; };
  return isKept(shape.height) && isKept(shape.width) && shape.height.output >= kFewRows &&
         lanesUsed(shape.width.output, shape) > kQuarter;
}

/// Whether a depthwise filter of many taps has rows of less than half a vector, and the batch fills vectors.
constexpr bool fillsImagesAlone(const ConvShape& shape) {
  constexpr int64_t kManyTaps = 49, kHalf = 50;
  return shape.kind != ConvKind::filter_gradient && shape.taps() >= kManyTaps && shape.width.stride == 1 &&
         lanesUsed(shape.width.output, shape) < kHalf && !fillsPairs(shape) &&
         fitsImages(correlationOf(shape));
}

/// One tap's filter's gradient of few outputs: on long rows a pixel that is read meets all of them at once.
constexpr bool paysByLongRows(const ConvShape& shape) {
  constexpr int64_t kFewOutputs = 4, kLongRowBytes = 128, kMostLanesUsed = 75;
  return shape.kind == ConvKind::filter_gradient && shape.isPointwise() &&
         shape.groupOutputs() <= kFewOutputs &&
         shape.width.output * sizeOf(computedType(shape.type)) >= kLongRowBytes &&
         lanesUsed(shape.width.output, shape) >= kMostLanesUsed && fitsDirect(shape, ConvMethod::by_rows);
}

/// Copying patches pays with many outputs, unless each copy takes a stride; a vector may have few lanes in
/// use, but not too few.
constexpr ConvMethod convMethod(const ConvShape& shape) {
  constexpr int64_t kFewInputs = 8, kLeastLanesUsed = 30, kMostLanesUsed = 75, kFewTaps = 9;
  if (paysSubsampled(shape)) return ConvMethod::subsampled;
  if (paysByChannels(shape)) return ConvMethod::by_channels;
  if (paysDepthwise(shape) && !fillsImagesAlone(shape)) return ConvMethod::depthwise;
  if (shape.taps() == 1) return paysByLongRows(shape) ? ConvMethod::by_rows : ConvMethod::patches;
  if (shape.kind == ConvKind::filter_gradient && paysByOutputs(shape)) return ConvMethod::by_outputs;
  if (shape.kind == ConvKind::input_gradient && isStrided(shape)) return ConvMethod::patches;
  const ConvShape s = correlationOf(shape);
  const bool strided_copies =
      shape.kind == ConvKind::forward && shape.width.stride > 1 && s.groupInputs() < kFewInputs;
  const bool pays = shape.groupOutputs() < kManyChannels || strided_copies;
  if (!pays) return ConvMethod::patches;
  const int64_t row_lanes = lanesUsed(s.width.output, s);
  const bool by_rows = row_lanes >= kLeastLanesUsed && fitsDirect(shape, ConvMethod::by_rows);
  // Bringing images together takes longer than few taps by strides.
  if (by_rows && strided_copies && shape.taps() <= kFewTaps && row_lanes >= kMostLanesUsed)
    return ConvMethod::by_rows;
  if (shape.kind != ConvKind::filter_gradient && isModest(s) && fitsImages(s)) return ConvMethod::by_images;
  return by_rows ? ConvMethod::by_rows : ConvMethod::patches;
}

}  // namespace gpuc
