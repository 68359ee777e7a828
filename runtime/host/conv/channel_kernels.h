// Products of pixels and their packing, with channels side by side; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/conv/register_blocks.h"
#include "runtime/host/matmul/transpose.h"

namespace gpuc {
namespace {

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// kRows x kColumns vectors of sums. kAlong: the terms of a row lie side by side in a, else the rows do. How
/// far rows lie apart is a constant: as many addresses in registers would leave none for others.
template <int kRows, int kColumns, bool kAlong, typename T>
__attribute__((noinline)) void pixelBlock(const PixelProducts<T>& p, int64_t row, int64_t column) {
  constexpr int64_t kRowStep = kAlong ? kPixelBytes / static_cast<int64_t>(sizeof(T)) : 1;
  const int64_t depth_step = kAlong ? 1 : p.a_step, b_step = p.b_step;
  T* to = p.sums + row * p.sums_row + column;
  Vector<T> sums[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kColumns; ++v)
      sums[r][v] = p.accumulate ? load(to + r * p.sums_row + v * kLanes<T>) : Vector<T>{};
  for (int64_t term = 0; term < p.term_count; ++term) {
    const T* a = p.a + p.terms[term].a + row * kRowStep;
    const T* b = p.b + p.terms[term].b + column;
    for (int64_t d = p.terms[term].depth; d > 0; --d, a += depth_step, b += b_step) {
      Vector<T> right[kColumns];
      for (int v = 0; v < kColumns; ++v) right[v] = load(b + v * kLanes<T>);
      for (int r = 0; r < kRows; ++r) {
        const Vector<T> left = splat<T>(a[r * kRowStep]);
        for (int v = 0; v < kColumns; ++v) sums[r][v] = multiplyAdd<T>(left, right[v], sums[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kColumns; ++v) store(to + r * p.sums_row + v * kLanes<T>, sums[r][v]);
}

/// Calls pixelBlock with `rows` as a constant.
template <int kRows, int kColumns, bool kAlong, typename T>
void withPixelRows(const PixelProducts<T>& p, int64_t row, int64_t rows, int64_t column) {
  if constexpr (kRows > 1)
    if (rows < kRows) return withPixelRows<kRows - 1, kColumns, kAlong>(p, row, rows, column);
  pixelBlock<kRows, kColumns, kAlong>(p, row, column);
}

/// All rows of kColumns vectors: in as few blocks as possible, of nearly equal height. Of one vector more
/// than eight: so many are in the making at once, and each load of b meets more.
template <int kColumns, bool kAlong, typename T>
void pixelColumns(const PixelProducts<T>& p, int64_t column) {
  constexpr int kMostRows = 12;
  constexpr int kMost = kMostSums / kColumns < kMostRows ? kMostSums / kColumns : kMostRows;
  const int64_t blocks = (p.rows + kMost - 1) / kMost;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t row = evenBegin(p.rows, blocks, block);
    withPixelRows<kMost, kColumns, kAlong>(p, row, evenBegin(p.rows, blocks, block + 1) - row, column);
  }
}

template <bool kAlong, typename T>
void pixelProducts(const PixelProducts<T>& p) {
  constexpr int kMost = kVectorBytes == 64 ? 4 : 2;
  int64_t column = 0;
  for (; column + kMost * kLanes<T> <= p.columns; column += kMost * kLanes<T>)
    pixelColumns<kMost, kAlong>(p, column);
  if constexpr (kMost > 2)
    for (; column + 2 * kLanes<T> <= p.columns; column += 2 * kLanes<T>) pixelColumns<2, kAlong>(p, column);
  for (; column < p.columns; column += kLanes<T>) pixelColumns<1, kAlong>(p, column);
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// A square of channels x pixels, turned into pixels x channels.
template <bool kWhole, typename S>
inline void packChannelSquare(const PackedPixels<S>& p, int64_t channel, int64_t pixel) {
  using T = Computed<S>;
  const int64_t channels = p.channels - channel, pixels = p.pixels - pixel;
  const S* from = p.picture + channel * p.channel_stride + pixel;
  Vector<T> square[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) {
    const S* row = from + i * p.channel_stride;
    if constexpr (kWhole)
      square[i] = load(row);
    else if (i >= channels)
      square[i] = Vector<T>{};
    else
      square[i] = pixels >= kLanes<T> ? load(row) : loadFirst(row, pixels);
  }
  exchange<kLanes<T> / 2, T>(square);
  for (int i = 0; i < kLanes<T>; ++i) {
    if (!kWhole && i >= pixels) return;
    const int64_t place = p.places[pixel + i];
    if (place >= 0) store(p.packed + place * p.pixel_stride + channel, square[i]);
  }
}

template <typename S>
void packPixels(const PackedPixels<S>& p) {
  constexpr int64_t kSide = kLanes<Computed<S>>;
  for (int64_t channel = 0; channel < p.packed_channels; channel += kSide)
    for (int64_t pixel = 0; pixel < p.pixels; pixel += kSide)
      if (channel + kSide <= p.channels && pixel + kSide <= p.pixels)
        packChannelSquare<true>(p, channel, pixel);
      else
        packChannelSquare<false>(p, channel, pixel);
}

/// The reverse, of sums.
template <bool kWhole, typename S>
inline void unpackChannelSquare(const UnpackedPixels<S>& p, int64_t channel, int64_t pixel) {
  using T = Computed<S>;
  const int64_t channels = p.channels - channel, pixels = p.pixels - pixel;
  Vector<T> square[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) {
    if (!kWhole && i >= pixels) {
      square[i] = Vector<T>{};
      continue;
    }
    const int64_t place = p.places ? p.places[pixel + i] - p.first_place : pixel + i;
    square[i] = load(p.sums + place * p.pixel_stride + channel);
  }
  exchange<kLanes<T> / 2, T>(square);
  S* to = p.picture + channel * p.channel_stride + pixel;
  for (int i = 0; i < kLanes<T>; ++i, to += p.channel_stride) {
    if (!kWhole && i >= channels) return;
    kWhole || pixels >= kLanes<T> ? store(to, square[i]) : storeFirst(to, square[i], pixels);
  }
}

template <typename S>
void unpackPixels(const UnpackedPixels<S>& p) {
  constexpr int64_t kSide = kLanes<Computed<S>>;
  for (int64_t channel = 0; channel < p.channels; channel += kSide)
    for (int64_t pixel = 0; pixel < p.pixels; pixel += kSide)
      if (channel + kSide <= p.channels && pixel + kSide <= p.pixels)
        unpackChannelSquare<true>(p, channel, pixel);
      else
        unpackChannelSquare<false>(p, channel, pixel);
}

}  // namespace
}  // namespace gpuc
