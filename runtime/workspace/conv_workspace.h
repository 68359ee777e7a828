// How the host computes a convolution, as far as the compiler must know it: by which method, how a filter's
// gradient is cut, and the workspace to reserve for it in the plan. All of it follows from the shape alone.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_method.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// Whether the pixels that one tap by strides reads are taken by the tile that multiplies them, since no
/// other needs them: forward where the filter stays in the second-level cache, so that a tile has all
/// outputs; of the filter's gradient where x is transposed, and all outputs are one tile's. Else, and where
/// there are so few that a tile has fewer outputs, they pass through the workspace, as x's cotangent does.
constexpr bool takesPixelsByTile(const ConvShape& s, ConvMethod method) {
  constexpr int64_t kFilterBytes = 512 * 1024, kManyPixels = 2048;
  if (method != ConvMethod::subsampled || s.taps() > 1 || s.batch * s.outputPixels() < kManyPixels)
    return false;
  const ConvShape left = subsampledShape(s);
  if (convMethod(left) != ConvMethod::patches) return false;
  if (s.kind == ConvKind::forward)
    return s.groupOutputs() * s.groupInputs() * sizeOf(computedType(s.type)) <= kFilterBytes;
  const FilterGradientCut cut = cutFilterGradient(left);
  return s.kind == ConvKind::filter_gradient && cut.exchanged && cut.row_blocks == 1;
}

/// Elements of the filter as f32 in the workspace, with what comes before the next cache line; 0 if it is
/// read where it lies.
constexpr int64_t convWidenedFilter(const ConvShape& shape, ConvMethod method) {
  const bool widens = computedType(shape.type) != shape.type && shape.kind != ConvKind::filter_gradient &&
                      method != ConvMethod::by_channels && method != ConvMethod::winograd;
  return widens ? (shape.filterElements() + 15) / 16 * 16 : 0;
}

/// Whether a filter's gradient of one tap is summed up along pixels.
constexpr bool sumsPixelRows(const ConvShape& shape, ConvMethod method) {
  return method == ConvMethod::by_rows && shape.kind == ConvKind::filter_gradient && shape.isPointwise();
}

/// Parts of a filter's gradient in the workspace; 0 if it is summed up where it lies.
constexpr int64_t convFilterParts(const ConvShape& shape, ConvMethod method) {
  if (shape.kind != ConvKind::filter_gradient || method == ConvMethod::winograd) return 0;
  const bool direct = method != ConvMethod::patches;
  const int64_t parts = method == ConvMethod::depthwise ? cutDepthwise(shape).parts
                        : sumsPixelRows(shape, method)  ? cutPixelRows(shape).parts
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
constexpr int64_t convWorkspaceBytes(const ConvShape& shape, ConvMethod method) {
  if (method == ConvMethod::subsampled) {
    const ConvShape left = subsampledShape(shape);
    return (takesPixelsByTile(shape, method) ? 0 : subsampledBytes(shape)) +
           convWorkspaceBytes(left, convMethod(left));
  }
  if (method == ConvMethod::by_channels)
    return channelsWorkspaceElements(shape) * sizeOf(computedType(shape.type));
  if (method == ConvMethod::winograd)
    return winogradWorkspaceElements(shape) * sizeOf(computedType(shape.type));
  int64_t elements = convFilterParts(shape, method) * shape.filterElements();
  if (const int64_t filter = convWidenedFilter(shape, method); filter > 0) {
    const bool added = shape.kind == ConvKind::input_gradient && !shape.isPointwise() &&
                       !spreadsPixels(shape) && method == ConvMethod::patches;
    elements += filter + (added ? shape.inputElements() : 0);
  }
  return elements * sizeOf(computedType(shape.type));
}
constexpr int64_t convWorkspaceBytes(const ConvShape& shape) {
  return convWorkspaceBytes(shape, convMethod(shape));
}

}  // namespace gpuc
