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

/// The filter in the type of the arithmetic: where it lies, or as widenFilter left it in the workspace.
template <typename S>
const Computed<S>* filterOf(const ConvOperands& operands) {
  return static_cast<const Computed<S>*>(kIsWidened<S> ? operands.workspace : operands.b);
}

}  // namespace gpuc
