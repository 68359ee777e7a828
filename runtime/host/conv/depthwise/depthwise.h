// Planes of a depthwise convolution as the kernels want them, those of 16 bits as f32.
#pragma once

#include <algorithm>

#include "runtime/host/conv/patch_block.h"

namespace gpuc {

/// Room for what is widened of one tensor at once: f32 of a strip, or of few rows of a wide picture.
inline constexpr int64_t kDepthwiseScratchBytes = 80 * 1024;

/// Rows [row, row_end) of `planes` planes of one image.
struct PlaneRows {
  int64_t planes, pixels, columns;
  int64_t row, row_end;

  int64_t stripElements() const { return (row_end - row) * columns; }
};

/// The rows of the one that rows [row, row_end) of the other meet: of x by y, or of y by x.
inline PlaneRows rowsMet(const ConvShape& s, int64_t planes, int64_t row, int64_t row_end, bool of_x) {
  const ConvAxis& h = s.height;
  auto clamp = [](int64_t at, int64_t end) { return std::clamp<int64_t>(at, 0, end); };
  if (of_x)
    return {planes, s.inputPixels(), s.width.input, clamp(row * h.stride - h.low, h.input),
            clamp((row_end - 1) * h.stride - h.low + h.kernel, h.input)};
  const int64_t first = row + h.low - (h.kernel - 1), last = row_end - 1 + h.low;
  return {planes, s.outputPixels(), s.width.output,
          clamp(first <= 0 ? 0 : (first + h.stride - 1) / h.stride, h.output),
          clamp(last / h.stride + 1, h.output)};
}

/// Planes to be read: where they lie, or widened to `scratch`. `first` is row 0 of the first one; a channel
/// has `channels` of them, which are read one by one.
template <typename S>
ReadPlanes<Computed<S>> readPlanes(const ConvProblem& problem, const PlaneRows& rows, const S* first,
                                   int64_t channels, Computed<S>* scratch) {
  const int64_t strip = kIsWidened<S> ? rows.stripElements() : rows.pixels;
  const Computed<S>* data = nullptr;
  if constexpr (kIsWidened<S>) {
    problem.vector_kernels->of<S>().widen(
        {rows.planes, strip, first + rows.row * rows.columns, rows.pixels, scratch, strip});
    data = scratch - rows.row * rows.columns;
  } else {
    data = first;
  }
  return {data, channels * strip, rows.columns, rows.row, rows.row_end};
}

}  // namespace gpuc
