// What the compiler sets aside for a convolution through cuDNN, and so the most that its engine may ask for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/plan/conv_shape.h"

namespace gpuc {

/// In bytes. cuDNN's engines on tensor cores, and for the filter's gradient those of f32, want channels last,
/// as a multiple of 16 bytes: they turn all three tensors around in the workspace, beside what they split.
/// Others keep a table there of where a patch's elements lie, in 4 bytes each. (Seen in cuDNN 9.19; held by
/// cudnn_library_test.)
constexpr int64_t cudnnWorkspaceBytes(const ConvShape& shape, bool tf32) {
  const int64_t bytes = sizeOf(shape.type), least = 64 << 10;
  const bool turns_around = bytes == 2 || tf32 || (bytes == 4 && shape.kind == ConvKind::filter_gradient);
  if (!turns_around) return std::max(least, (4 * shape.patchRows() + 63) / 64 * 64);
  auto padded = [&](int64_t channels) {
    const int64_t multiple = 16 / bytes;
    return (channels + multiple - 1) / multiple * multiple;
  };
  const int64_t input = shape.batch * padded(shape.in_channels) * shape.inputPixels(),
                filter = padded(shape.out_channels) * padded(shape.groupInputs()) * shape.taps(),
                output = shape.batch * padded(shape.out_channels) * shape.outputPixels();
  return least + ((input + filter + output) * bytes * 9 / 8 + 63) / 64 * 64;
}

}  // namespace gpuc
