// Correlation with an image in each lane; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/conv/register_blocks.h"
#include "runtime/host/matmul/load.h"

namespace gpuc {
namespace {

/// Vectors of a packed pixel.
template <typename T>
constexpr int kPixelVectors = static_cast<int>(kPackedImages<T>) / kLanes<T>;

constexpr int kMostImageOutputs = kVectorBytes == 64 ? 8 : 4;
constexpr int kMostPixels = 6;

/// Pixels of a block that has so many outputs.
template <typename T>
constexpr int mostPixels(int outputs) {
  const int most = kMostSums / (outputs * kPixelVectors<T>);
  return most < 1 ? 1 : most < kMostPixels ? most : kMostPixels;
}

/// kOutputs x kPixels pixels of one row; taps [row, row_end) x [column, column_end) of the kernel.
struct ImageBlock {
  int64_t output, pixel, image_pixel;  // where it begins: in sums, in the first packed row
  int64_t row, row_end, column, column_end;
};

template <int kOutputs, int kPixels, typename T>
__attribute__((always_inline)) inline void imageBlock(const ImageCorrelation<T>& c, const ImageBlock& b) {
  constexpr int64_t kPixel = kPackedImages<T>;
  const int64_t direction = c.flipped ? -1 : 1;
  const T* filter = c.filter + b.output * c.filter_output;
  T* to = c.sums + (b.output * c.rows * c.columns + b.pixel) * kPixel;
  Vector<T> sums[kOutputs][kPixels][kPixelVectors<T>] = {};
  for (int64_t channel = 0; channel < c.channels; ++channel)
    for (int64_t i = b.row; i < b.row_end; ++i) {
      const T* from =
          c.packed + channel * c.packed_channel + i * c.row_dilation * c.packed_row + b.image_pixel * kPixel;
      const T* weights = filter + channel * c.filter_channel + direction * i * c.kernel_columns;
      for (int64_t j = b.column; j < b.column_end; ++j) {
        Vector<T> x[kPixels][kPixelVectors<T>];
        for (int q = 0; q < kPixels; ++q)
          for (int v = 0; v < kPixelVectors<T>; ++v)
            x[q][v] = load(from + (q * c.column_step + j * c.column_dilation) * kPixel + v * kLanes<T>);
        for (int o = 0; o < kOutputs; ++o) {
          const Vector<T> w = weights[direction * j + o * c.filter_output] - Vector<T>{};
          for (int q = 0; q < kPixels; ++q)
            for (int v = 0; v < kPixelVectors<T>; ++v)
              sums[o][q][v] = multiplyAdd<T>(w, x[q][v], sums[o][q][v]);
        }
      }
    }
  for (int o = 0; o < kOutputs; ++o)
    for (int q = 0; q < kPixels; ++q)
      for (int v = 0; v < kPixelVectors<T>; ++v)
        store(to + (o * c.rows * c.columns + q) * kPixel + v * kLanes<T>, sums[o][q][v]);
}

/// Taps t in [first, end) of `taps` for which any of the positions at, at + step, …, at + last, moved by t ·
/// dilation, lies in [begin, begin + size).
inline void tapsWithin(int64_t taps, int64_t dilation, int64_t at, int64_t last, int64_t begin, int64_t size,
                       int64_t& first, int64_t& end) {
  first = 0, end = taps;
  while (first < end && at + last + first * dilation < begin) ++first;
  while (end > first && at + (end - 1) * dilation >= begin + size) --end;
}

/// kPixels adjacent columns of all rows.
template <int kOutputs, int kPixels, typename T>
__attribute__((noinline)) void imageColumns(const ImageCorrelation<T>& c, int64_t output, int64_t column) {
  ImageBlock block = {};
  block.output = output;
  tapsWithin(c.kernel_columns, c.column_dilation, column * c.column_step, (kPixels - 1) * c.column_step,
             c.left, c.image_width, block.column, block.column_end);
  for (int64_t row = 0; row < c.rows; ++row) {
    const int64_t first = row * c.row_step - c.top;
    tapsWithin(c.kernel_rows, c.row_dilation, first, 0, 0, c.image_rows, block.row, block.row_end);
    block.pixel = row * c.columns + column;
    block.image_pixel = first * (c.packed_row / kPackedImages<T>)+column * c.column_step;
    imageBlock<kOutputs, kPixels, T>(c, block);
  }
}

/// Calls imageColumns with `pixels` as a constant.
template <int kOutputs, int kPixels, typename T>
void withPixels(const ImageCorrelation<T>& c, int64_t output, int64_t column, int64_t pixels) {
  if constexpr (kPixels > 1)
    if (pixels < kPixels) return withPixels<kOutputs, kPixels - 1, T>(c, output, column, pixels);
  imageColumns<kOutputs, kPixels, T>(c, output, column);
}

/// All of kOutputs outputs: in as few blocks a row as possible, of nearly equal width.
template <int kOutputs, typename T>
void imageOutputs(const ImageCorrelation<T>& c, int64_t output) {
  constexpr int kMost = mostPixels<T>(kOutputs);
  const int64_t blocks = (c.columns + kMost - 1) / kMost;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t column = evenBegin(c.columns, blocks, b);
    withPixels<kOutputs, kMost, T>(c, output, column, evenBegin(c.columns, blocks, b + 1) - column);
  }
}

template <typename T>
void correlateImages(const ImageCorrelation<T>& c) {
  for (int64_t output = 0; output < c.outputs;) {
    const int64_t rest = c.outputs - output;
    if (kMostImageOutputs >= 8 && rest >= 8)
      imageOutputs<kMostImageOutputs, T>(c, output), output += kMostImageOutputs;
    else if (kMostImageOutputs >= 8 && rest >= 6)
      imageOutputs<kMostImageOutputs >= 8 ? 6 : 1, T>(c, output), output += 6;
    else if (rest >= 4)
      imageOutputs<4, T>(c, output), output += 4;
    else if (rest >= 2)
      imageOutputs<2, T>(c, output), output += 2;
    else
      imageOutputs<1, T>(c, output), output += 1;
  }
}

}  // namespace
}  // namespace gpuc
