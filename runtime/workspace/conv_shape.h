// What a convolution is: its kind, its element type and its extents.
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
/// y[batch, out_channels, height.output, width.output], dense and row-major; with channels last, on CUDA
/// alone, x[batch, height, width, in_channels], w[out_channels, kernels…, in_channels / groups] and y as x.
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
  bool channels_last = false;
  bool bias = false;  // of forward: bias[out_channels] is added to y, by channel
  bool relu = false;  // of forward: max(…, 0) is taken of that
  bool mask = false;  // of input_gradient: dx is 0 where the mask, which lies as dx does, is 0 or less

  constexpr int64_t groupInputs() const { return in_channels / groups; }
  constexpr int64_t groupOutputs() const { return out_channels / groups; }
  constexpr int64_t taps() const { return height.kernel * width.kernel; }
  /// Rows of the matrix of patches: every element that one output of a group reads.
  constexpr int64_t patchRows() const { return groupInputs() * taps(); }
  constexpr int64_t inputPixels() const { return height.input * width.input; }
  constexpr int64_t outputPixels() const { return height.output * width.output; }
  constexpr int64_t inputElements() const { return batch * in_channels * inputPixels(); }
  constexpr int64_t filterElements() const { return out_channels * patchRows(); }
  /// One tap, at the pixel itself: 1x1 without strides and padding. Then the patches are the input.
  constexpr bool isPointwise() const {
    return taps() == 1 && height.stride == 1 && width.stride == 1 && inputPixels() == outputPixels();
  }
};

/// One window, which is the whole picture.
constexpr bool isOneWindow(const ConvShape& s) {
  auto isWhole = [](const ConvAxis& axis) {
    return axis.output == 1 && axis.kernel == axis.input && axis.low == 0 && axis.high == 0;
  };
  return isWhole(s.height) && isWhole(s.width);
}

/// The size of the parts when `total` is cut into as few as possible, of nearly equal size: at most `most`,
/// which is a multiple of `multiple`, as the parts are (unless there is but one).
constexpr int64_t evenConvPart(int64_t total, int64_t most, int64_t multiple) {
  if (total <= most) return total;
  const int64_t parts = (total + most - 1) / most;
  return ((total + parts - 1) / parts + multiple - 1) / multiple * multiple;
}

constexpr int64_t ceilToMultiple(int64_t value, int64_t of) { return (value + of - 1) / of * of; }

/// Over all taps, how many windows meet the image with it, rather than padding.
constexpr int64_t tapsMet(const ConvAxis& axis) {
  int64_t met = 0;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t shift =
        axis.low - tap * axis.dilation;  // of windows p: shift <= p · stride < shift + input
    const int64_t begin = shift <= 0 ? 0 : (shift + axis.stride - 1) / axis.stride;
    const int64_t room = shift + axis.input;
    const int64_t end = room <= 0 ? 0 : std::min(axis.output, (room + axis.stride - 1) / axis.stride);
    met += std::max<int64_t>(0, end - begin);
  }
  return met;
}

/// Bytes of what an input's gradient spreads of a channel at once, at most.
inline constexpr int64_t kSpreadBytes = 512;

/// Whether the input's gradient is a product whose pixels are spread, with zeros between: one tap by strides,
/// whose windows lie within the image.
constexpr bool spreadsPixels(const ConvShape& s) {
  auto within = [](const ConvAxis& axis) {
    return axis.low == 0 && (axis.output - 1) * axis.stride < axis.input;
  };
  return s.kind == ConvKind::input_gradient && s.taps() == 1 && !s.isPointwise() && within(s.height) &&
         within(s.width) && s.width.output * sizeOf(computedType(s.type)) <= kSpreadBytes;
}

/// What is correlated with the filter: for the input's gradient the output's cotangent, with the filter
/// flipped, which is a forward convolution where no stride is taken. Its `low` may be negative.
constexpr ConvShape correlationOf(const ConvShape& shape) {
  if (shape.kind != ConvKind::input_gradient) return shape;
  ConvShape flipped = shape;
  flipped.in_channels = shape.out_channels, flipped.out_channels = shape.in_channels;
  for (ConvAxis ConvShape::* axis : {&ConvShape::height, &ConvShape::width}) {
    const ConvAxis& from = shape.*axis;
    ConvAxis& to = flipped.*axis;
    to.input = from.output, to.output = from.input;
    to.low = (from.kernel - 1) * from.dilation - from.low;
    to.high = (from.kernel - 1) * from.dilation - from.high;
  }
  return flipped;
}

}  // namespace gpuc
