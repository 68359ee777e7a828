// What the compiler must know of a convolution on the host: its shape, and the workspace to reserve for it in
// the plan.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/data_type.h"

namespace gpuc {

enum class ConvKind : uint8_t { forward, input_gradient, filter_gradient };

/// The windows along the height or the width of an image: window p covers input elements
/// p·stride - low + i·dilation, i in [0, kernel), of which those outside count as 0.
struct ConvAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t low = 0;
  int64_t high = 0;
  int64_t dilation = 1;
};

/// x[batch, in_channels, height, width], w[out_channels, in_channels / groups, kernels…] and
/// y[batch, out_channels, height.output, width.output], dense and row-major.
///   forward: y from x and w;  input_gradient: x's cotangent from y's and w;
///   filter_gradient: w's cotangent from y's and x.
struct ConvShape {
  ConvKind kind = ConvKind::forward;
  DataType type = DataType::f32;  // of all operands: f64, f32, f16 or bf16; the last two are summed in f32
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t in_channels = 1;
  int64_t out_channels = 1;
  ConvAxis height;
  ConvAxis width;

  int64_t groupInputs() const { return in_channels / groups; }
  int64_t groupOutputs() const { return out_channels / groups; }
  int64_t taps() const { return height.kernel * width.kernel; }
  /// Rows of the matrix of patches: every element that one output of a group reads.
  int64_t patchRows() const { return groupInputs() * taps(); }
  int64_t inputPixels() const { return height.input * width.input; }
  int64_t outputPixels() const { return height.output * width.output; }
  int64_t inputElements() const { return batch * in_channels * inputPixels(); }
  int64_t filterElements() const { return out_channels * patchRows(); }
  /// One tap, at the pixel itself: 1x1 without strides and padding. Then the patches are the input.
  bool isPointwise() const {
    return taps() == 1 && height.stride == 1 && width.stride == 1 && inputPixels() == outputPixels();
  }
};

/// The size of the parts when `total` is cut into as few as possible, of nearly equal size: at most `most`,
/// which is a multiple of `multiple`, as the parts are (unless there is but one).
constexpr int64_t evenConvPart(int64_t total, int64_t most, int64_t multiple) {
  if (total <= most) return total;
  const int64_t parts = (total + most - 1) / most;
  return ((total + parts - 1) / parts + multiple - 1) / multiple * multiple;
}

/// How the filter's gradient is cut, by the shape alone. A tile sums up `rows` x `outputs` elements of one
/// group over one part of all blocks of `pixels` output pixels; the parts' sums are then added up in order.
struct FilterGradientCut {
  int64_t rows, outputs, pixels;
  int64_t row_blocks, output_blocks, pixel_blocks;
  int64_t parts;
};

constexpr FilterGradientCut cutFilterGradient(const ConvShape& shape) {
  // 144 is nine taps of 16 channels; the three blocks of a tile take 148 KiB of stack in f32, 184 in f64.
  constexpr int64_t kRows = 144, kOutputs = 64, kPixelBytes = 512, kWantedTiles = 32;
  FilterGradientCut cut{};
  cut.rows = evenConvPart(shape.patchRows(), kRows, 16);
  cut.outputs = evenConvPart(shape.groupOutputs(), kOutputs, 16);
  cut.pixels = evenConvPart(shape.outputPixels(), kPixelBytes / sizeOf(computedType(shape.type)), 16);
  cut.row_blocks = (shape.patchRows() + cut.rows - 1) / cut.rows;
  cut.output_blocks = (shape.groupOutputs() + cut.outputs - 1) / cut.outputs;
  cut.pixel_blocks = (shape.outputPixels() + cut.pixels - 1) / cut.pixels;
  const int64_t tiles = shape.groups * cut.row_blocks * cut.output_blocks;
  cut.parts = std::min(shape.batch * cut.pixel_blocks, (kWantedTiles + tiles - 1) / tiles);
  return cut;
}

/// Elements of the filter as f32 in the workspace, with what comes before the next cache line; 0 if it is
/// read where it lies.
constexpr int64_t convWidenedFilter(const ConvShape& shape) {
  const bool widens = computedType(shape.type) != shape.type && shape.kind != ConvKind::filter_gradient;
  return widens ? (shape.filterElements() + 15) / 16 * 16 : 0;
}

/// Bytes of workspace that the host's convolution of this shape needs: the parts of a filter's gradient, if
/// there are several; of f16 and bf16 the filter as f32, and the input's gradient in f32, to which each tap
/// is added (a pointwise one is made block by block). What else is packed lies on the stack of the thread
/// that computes a tile.
constexpr int64_t convWorkspaceBytes(const ConvShape& shape) {
  const int64_t element_bytes = sizeOf(computedType(shape.type));
  if (shape.kind == ConvKind::filter_gradient) {
    const int64_t parts = cutFilterGradient(shape).parts;
    return parts == 1 ? 0 : parts * shape.filterElements() * element_bytes;
  }
  int64_t elements = convWidenedFilter(shape);
  if (elements > 0 && shape.kind == ConvKind::input_gradient && !shape.isPointwise())
    elements += shape.inputElements();
  return elements * element_bytes;
}

}  // namespace gpuc
