// A problem's blocks of patches.
#pragma once

#include "runtime/host/conv/problem.h"

namespace gpuc {

inline PatchBlock patchBlock(const ConvProblem& problem, int64_t row, int64_t rows, int64_t pixel,
                             int64_t pixels, int64_t stride) {
  return {.height = &problem.shape.height,
          .width = &problem.shape.width,
          .valid_rows = problem.valid_rows.data(),
          .valid_columns = problem.valid_columns.data(),
          .row = row,
          .rows = rows,
          .pixel = pixel,
          .pixels = pixels,
          .stride = stride};
}

/// Elements before the first channel of a group in an image of x, or of y.
inline int64_t inputOffset(const ConvShape& s, int64_t image, int64_t group) {
  return (image * s.in_channels + group * s.groupInputs()) * s.inputPixels();
}
inline int64_t outputOffset(const ConvShape& s, int64_t image, int64_t group) {
  return (image * s.out_channels + group * s.groupOutputs()) * s.outputPixels();
}

/// Elements of the filter before the first output of a group.
inline int64_t filterOffset(const ConvShape& s, int64_t group) {
  return group * s.groupOutputs() * s.patchRows();
}

/// All pixels of a channel of the picture that one tap by strides reads.
template <typename S, typename T>
TakenPixels<S, T> takenPixels(const ConvShape& s, const S* picture, T* values) {
  return {.channels = 1,
          .pixel = 0,
          .pixels = s.outputPixels(),
          .columns = s.width.output,
          .picture = picture,
          .picture_channel = s.inputPixels(),
          .picture_row = s.height.stride * s.width.input,
          .column_step = s.width.stride,
          .values = values,
          .values_channel = s.outputPixels()};
}

/// The filter in the type of the arithmetic: where it lies, or as widenFilter left it in the workspace.
template <typename S>
const Computed<S>* filterOf(const ConvOperands& operands) {
  return static_cast<const Computed<S>*>(kIsWidened<S> ? operands.workspace : operands.b);
}

}  // namespace gpuc
