// Bringing images side by side and apart again, by squares that are transposed in registers; included by
// patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/matmul/transpose.h"

namespace gpuc {
namespace {

/// A square of kLanes images x kLanes pixels, transposed. kWhole: there are so many; else zeros fill it up.
template <bool kWhole, typename S>
inline void loadSquare(const S* from, int64_t image_stride, int64_t images, int64_t pixels,
                       Vector<Computed<S>> (&square)[kLanes<Computed<S>>]) {
  using T = Computed<S>;
  for (int i = 0; i < kLanes<T>; ++i) {
    const S* row = from + i * image_stride;
    if constexpr (kWhole)
      square[i] = load(row);
    else if (i >= images)
      square[i] = Vector<T>{};
    else
      square[i] = pixels >= kLanes<T> ? load(row) : loadFirst(row, pixels);
  }
  exchange<kLanes<T> / 2, T>(square);
}

/// The reverse: `pixels` vectors of images become rows of pixels.
template <bool kWhole, typename S>
inline void storeSquare(const Computed<S>* from, int64_t image_stride, int64_t images, int64_t pixels,
                        S* to) {
  using T = Computed<S>;
  Vector<T> square[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i)
    square[i] = kWhole || i < pixels ? load(from + i * kPackedImages<T>) : Vector<T>{};
  exchange<kLanes<T> / 2, T>(square);
  for (int i = 0; i < kLanes<T>; ++i) {
    S* row = to + i * image_stride;
    if constexpr (kWhole)
      store(row, square[i]);
    else if (i < images)
      pixels >= kLanes<T> ? store(row, square[i]) : storeFirst(row, square[i], pixels);
  }
}

template <typename T>
inline void zeroPixels(T* to, int64_t pixels) {
  for (int64_t i = 0; i < pixels * kPackedImages<T>; i += kLanes<T>) store(to + i, Vector<T>{});
}

/// Up to kLanes pixels of a row, for one vector of images.
template <bool kWhole, typename S>
inline void packSquare(const S* from, int64_t image_stride, int64_t images, int64_t pixels, Computed<S>* to) {
  using T = Computed<S>;
  Vector<T> square[kLanes<T>];
  loadSquare<kWhole>(from, image_stride, images, pixels, square);
  for (int i = 0; i < kLanes<T>; ++i)
    if (kWhole || i < pixels) store(to + i * kPackedImages<T>, square[i]);
}

/// One row; the last square of a wide one overlaps that before it.
template <typename S>
inline void packRow(const PackedImages& p, const S* from, int64_t images, Computed<S>* to) {
  using T = Computed<S>;
  const bool whole = p.width >= kLanes<T> && images >= kLanes<T>;
  for (int64_t pixel = 0; pixel < p.width; pixel += kLanes<T>) {
    if (whole) {
      const int64_t at = pixel + kLanes<T> <= p.width ? pixel : p.width - kLanes<T>;
      packSquare<true>(from + at, p.image_stride, images, kLanes<T>, to + at * kPackedImages<T>);
    } else {
      packSquare<false>(from + pixel, p.image_stride, images, p.width - pixel, to + pixel * kPackedImages<T>);
    }
  }
}

template <typename S>
void packImages(const PackedImages& p, const S* images, Computed<S>* packed) {
  using T = Computed<S>;
  const int64_t right = p.columns - p.left - p.width;
  for (int64_t channel = 0; channel < p.channels; ++channel)
    for (int64_t row = 0; row < p.rows; ++row) {
      T* to = packed + (channel * p.packed_rows + row) * p.columns * kPackedImages<T>;
      const S* from = images + channel * p.channel_stride + row * p.row_stride;
      zeroPixels(to, p.left);
      zeroPixels(to + (p.left + p.width) * kPackedImages<T>, right);
      for (int64_t first = 0; first < kPackedImages<T>; first += kLanes<T>)
        packRow(p, from + first * p.image_stride, p.images - first, to + p.left * kPackedImages<T> + first);
    }
}

template <typename S>
void unpackImages(const UnpackedImages& u, const Computed<S>* sums, S* images) {
  using T = Computed<S>;
  for (int64_t output = 0; output < u.outputs; ++output, sums += u.pixels * kPackedImages<T>)
    for (int64_t pixel = 0; pixel < u.pixels; pixel += kLanes<T>)
      for (int64_t first = 0; first < u.images; first += kLanes<T>) {
        const T* from = sums + pixel * kPackedImages<T> + first;
        S* to = images + first * u.image_stride + output * u.output_stride + pixel;
        const int64_t rest = u.pixels - pixel, rest_images = u.images - first;
        if (rest >= kLanes<T> && rest_images >= kLanes<T>)
          storeSquare<true>(from, u.image_stride, rest_images, rest, to);
        else
          storeSquare<false>(from, u.image_stride, rest_images, rest, to);
      }
}

}  // namespace
}  // namespace gpuc
