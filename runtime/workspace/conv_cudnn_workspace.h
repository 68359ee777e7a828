// What the compiler sets aside for a convolution through cuDNN, and so the most that its engine may ask for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// In bytes. cuDNN's engines on tensor cores, and for the filter's gradient those of f32, want channels last,
/// as a multiple of 16 bytes: they turn all three tensors around in the workspace, and beside them keep parts
/// of sums. Others keep a table of where a patch's elements lie, in 4 bytes each, or Winograd's filters,
/// which are up to 25/9 of the filter. Tensors of 16 bits that lie channels last and fill those 16 bytes they
/// read where they lie; those of TF32 for an A100 copy them nevertheless. So cuDNN 9.19's first choice for an
/// A100 and an H200 has room, which cudnn_library_test holds.
constexpr int64_t cudnnWorkspaceBytes(const ConvShape& shape, bool tf32) {
  constexpr int64_t kLeast = 64 << 10, kSums = 8 << 20;
  const int64_t bytes = sizeOf(shape.type);
  const bool turns_around = bytes == 2 || tf32 || (bytes == 4 && shape.kind == ConvKind::filter_gradient);
  auto aligned = [](int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; };
  if (!turns_around)
    return kLeast + aligned(std::max(3 * bytes * shape.filterElements(), 4 * shape.patchRows()), 64);
  auto padded = [&](int64_t channels) { return aligned(channels, 16 / bytes); };
  const int64_t input = shape.batch * padded(shape.in_channels) * shape.inputPixels(),
                filter = padded(shape.out_channels) * padded(shape.groupInputs()) * shape.taps(),
                output = shape.batch * padded(shape.out_channels) * shape.outputPixels(),
                tensors = (input + filter + output) * bytes,
                sums = std::max(tensors / 8, std::min(tensors, kSums));
  const bool in_place = shape.channels_last && bytes == 2 && shape.groups == 1 &&
                        padded(shape.in_channels) == shape.in_channels &&
                        padded(shape.out_channels) == shape.out_channels;
  return kLeast + aligned(in_place ? sums : tensors + sums, 64);
}

}  // namespace gpuc
