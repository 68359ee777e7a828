// Filters of 5x5 and 7x7 on rows of few pixels, padded by half the filter, of f32: sixteen planes at once, a
// channel in each lane. Planes are transposed into scratch, a vector for each pixel; then neither masks nor
// shuffles are left, nothing is multiplied with padding, and lanes of a filter's gradient need not be added
// up. Rows may be any number. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/workspace/conv_depthwise.h"

namespace gpuc {
namespace {

/// Planes at once, and the most pixels that one has room for.
constexpr int kChannelLanes = 16;
constexpr int64_t kMostLanePixels = kMostDepthwiseLanePixels;

/// A filter that goes over rows of so many columns, by columns.
template <int kKernel, int kStride, int kColumns>
struct LaneRow {
  static constexpr int kWindows = (kColumns + kStride - 1) / kStride;

  /// The column that column j of the filter has in window q; or -1.
  static constexpr int column(int q, int j) {
    const int c = q * kStride + j - kKernel / 2;
    return c >= 0 && c < kColumns ? c : -1;
  }
};

#if defined(__AVX512F__)

/// A square of 16 x 16.
inline __attribute__((always_inline)) void transposeSquare(Vector<float> (&v)[16]) {
  __m512 a[16], b[16];
#pragma unroll
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps((__m512)v[i], (__m512)v[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps((__m512)v[i], (__m512)v[i + 1]);
  }
#pragma unroll
  for (int i = 0; i < 16; i += 4)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = (__m512)_mm512_unpacklo_pd((__m512d)a[i + j], (__m512d)a[i + j + 2]);
      b[i + 2 * j + 1] = (__m512)_mm512_unpackhi_pd((__m512d)a[i + j], (__m512d)a[i + j + 2]);
    }
#pragma unroll
  for (int i = 0; i < 16; i += 8)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      a[i + j] = _mm512_shuffle_f32x4(b[i + j], b[i + j + 4], 0x88);
      a[i + j + 4] = _mm512_shuffle_f32x4(b[i + j], b[i + j + 4], 0xDD);
    }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    v[j] = (Vector<float>)_mm512_shuffle_f32x4(a[j], a[j + 8], 0x88);
    v[j + 8] = (Vector<float>)_mm512_shuffle_f32x4(a[j], a[j + 8], 0xDD);
  }
}

/// Calls run(first) for each sixteen of `count`, which are sixteen or more; the last ones may overlap others.
template <typename Run>
inline __attribute__((always_inline)) void forSixteens(int64_t count, const Run& run) {
  for (int64_t i = 0; i < count; i += kChannelLanes)
    run(i + kChannelLanes <= count ? i : count - kChannelLanes);
}

/// pixels[i] = element i of each of sixteen planes; and back.
inline void toLanes(const float* planes, int64_t plane, int64_t count, Vector<float>* pixels) {
  forSixteens(count, [&](int64_t first) __attribute__((always_inline)) {
    Vector<float> square[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) square[i] = load(planes + i * plane + first);
    transposeSquare(square);
#pragma unroll
    for (int i = 0; i < 16; ++i) pixels[first + i] = square[i];
  });
}
inline void fromLanes(const Vector<float>* pixels, int64_t count, float* planes, int64_t plane) {
  forSixteens(count, [&](int64_t first) __attribute__((always_inline)) {
    Vector<float> square[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) square[i] = pixels[first + i];
    transposeSquare(square);
#pragma unroll
    for (int i = 0; i < 16; ++i) store(planes + i * plane + first, square[i]);
  });
}

/// The rows of the filter that meet those of x from `top` on, of which there are `rows`.
struct MetRows {
  int64_t begin, end;

  MetRows(int64_t top, int64_t rows, int64_t kernel)
      : begin(top < 0 ? -top : 0), end(rows - top < kernel ? rows - top : kernel) {}
};

/// The sums of a row of windows, of which the first one begins in row `top` of `rows`.
template <int kKernel, int kStride, int kColumns>
inline void sumLanes(const Vector<float>* x, int64_t top, int64_t rows, const Vector<float>* taps,
                     Vector<float>* y) {
  using Row = LaneRow<kKernel, kStride, kColumns>;
  Vector<float> sums[Row::kWindows] = {};
  const MetRows met(top, rows, kKernel);
#pragma clang loop unroll(disable)
  for (int64_t i = met.begin; i < met.end; ++i) {
    const Vector<float>*from = x + (top + i) * kColumns, *tap = taps + i * kKernel;
    Vector<float> row[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) row[c] = from[c];
#pragma unroll
    for (int j = 0; j < kKernel; ++j)
#pragma unroll
      for (int q = 0; q < Row::kWindows; ++q)
        if (const int c = Row::column(q, j); c >= 0) sums[q] = multiplyAdd<float>(tap[j], row[c], sums[q]);
  }
#pragma unroll
  for (int q = 0; q < Row::kWindows; ++q) y[q] = sums[q];
}

/// A row of the picture's cotangent by strides of two, of `rows` rows of windows.
template <int kKernel, int kColumns>
inline void sumLanesBack(const Vector<float>* y, int64_t row, int64_t rows, const Vector<float>* taps,
                         Vector<float>* x) {
  using Row = LaneRow<kKernel, 2, kColumns>;
  Vector<float> sums[kColumns] = {};
#pragma clang loop unroll(disable)
  for (int64_t i = row & 1; i < kKernel; i += 2) {
    const int64_t window = (row - i) / 2;
    if (row < i || window >= rows) continue;
    const Vector<float>*from = y + window * Row::kWindows, *tap = taps + i * kKernel;
    Vector<float> windows[Row::kWindows];
#pragma unroll
    for (int q = 0; q < Row::kWindows; ++q) windows[q] = from[q];
#pragma unroll
    for (int j = 0; j < kKernel; ++j)
#pragma unroll
      for (int q = 0; q < Row::kWindows; ++q)
        if (const int c = Row::column(q, j); c >= 0)
          sums[c] = multiplyAdd<float>(tap[j], windows[q], sums[c]);
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) x[c] = sums[c];
}

/// Sixteen planes' taps, in the order in which they are met.
template <int kKernel>
inline void tapsToLanes(const PlaneSums<float>& p, int64_t plane, Vector<float>* taps) {
  constexpr int kTaps = kKernel * kKernel;
  toLanes(p.filter + plane * p.filter_plane, p.filter_plane, kTaps, taps);
  if (!p.flipped) return;
  for (int tap = 0; tap < kTaps / 2; ++tap) {
    const Vector<float> other = taps[kTaps - 1 - tap];
    taps[kTaps - 1 - tap] = taps[tap], taps[tap] = other;
  }
}

/// Of the elements of sixteen planes, the lines that step `step` of `steps` asks for: of what is read next,
/// and of what is written at the end.
inline void askForPart(const float* planes, int64_t elements, int64_t step, int64_t steps) {
  const int64_t end = (step + 1) * elements / steps;
  for (int64_t i = step * elements / steps; i < end; i += kLanes<float>) askForLines<1>(planes + i);
}
inline void askForPartToWrite(const float* planes, int64_t elements, int64_t step, int64_t steps) {
  const int64_t end = (step + 1) * elements / steps;
  for (int64_t i = step * elements / steps; i < end; i += kLanes<float>) askForLinesToWrite<1>(planes + i);
}

/// Planes by sixteen; kBack: x's cotangent by strides of two.
template <int kKernel, int kStride, int kColumns, bool kBack>
__attribute__((noinline)) void sumInLanes(PlaneSums<float> p) {
  Vector<float> taps[kKernel * kKernel], from[kMostLanePixels], to[kMostLanePixels];
  const int64_t rows = p.source.row_end, planes = kChannelLanes;
  for (int64_t plane = 0; plane + planes <= p.planes; plane += planes) {
    tapsToLanes<kKernel>(p, plane, taps);
    for (int64_t image = 0; image < p.images; ++image) {
      const float* source = p.source.data + plane * p.source.plane + image * p.source_image;
      const float* next = source + (image + 1 < p.images ? p.source_image : planes * p.source.plane);
      float* result = p.result + plane * p.result_plane + image * p.result_image;
      toLanes(source, p.source.plane, rows * p.source.columns, from);
      for (int64_t row = 0; row < p.row_end; ++row) {
        askForPart(next, planes * p.source.plane, row, p.row_end);
        askForPartToWrite(result, planes * p.result_plane, row, p.row_end);
        if constexpr (kBack)
          sumLanesBack<kKernel, kColumns>(from, row + p.low_row, rows, taps, to + row * kColumns);
        else
          sumLanes<kKernel, kStride, kColumns>(from, row * kStride - p.low_row, rows, taps,
                                               to + row * p.columns);
      }
      fromLanes(to, p.row_end * p.columns, result, p.result_plane);
    }
  }
}

/// Adds the products of a row of the filter: of each row of windows and the row of the picture that it meets.
/// Those of even and of odd windows are apart, lest one waits for the other.
template <int kKernel, int kStride, int kColumns>
inline void multiplyLanes(const Vector<float>* x, int64_t first_row, int64_t rows, const Vector<float>* y,
                          int64_t windows, Vector<float>* sums) {
  using Row = LaneRow<kKernel, kStride, kColumns>;
  Vector<float> added[2][kKernel] = {};
#pragma clang loop unroll(disable)
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t row = w * kStride + first_row;
    if (row < 0 || row >= rows) continue;
    const Vector<float>*right = x + row * kColumns, *left = y + w * Row::kWindows;
    Vector<float> met[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) met[c] = right[c];
#pragma unroll
    for (int q = 0; q < Row::kWindows; ++q)
#pragma unroll
      for (int j = 0; j < kKernel; ++j)
        if (const int c = Row::column(q, j); c >= 0)
          added[q % 2][j] = multiplyAdd<float>(left[q], met[c], added[q % 2][j]);
  }
#pragma unroll
  for (int j = 0; j < kKernel; ++j) sums[j] += added[0][j] + added[1][j];
}

/// The sums of sixteen planes lie where those of the first one would.
template <int kKernel, int kStride, int kColumns>
__attribute__((noinline)) void multiplyInLanes(PlaneProducts<float> p) {
  Vector<float> x[kMostLanePixels], y[kMostLanePixels];
  const int64_t planes = kChannelLanes;
  for (int64_t plane = 0; plane + planes <= p.planes; plane += planes) {
    auto* sums = reinterpret_cast<Vector<float>*>(p.lanes + plane * p.lanes_plane);
    const float *x_planes = p.x.data + plane * p.x.plane, *y_planes = p.y.data + plane * p.y.plane;
    for (int64_t image = 0; image < p.images; ++image, x_planes += p.x_image, y_planes += p.y_image) {
      toLanes(x_planes, p.x.plane, p.x.row_end * p.x.columns, x);
      toLanes(y_planes, p.y.plane, p.y.row_end * p.y.columns, y);
      for (int64_t i = 0; i < kKernel; ++i) {
        askForPart(x_planes + p.x_image, planes * p.x.plane, i, kKernel);
        askForPart(y_planes + p.y_image, planes * p.y.plane, i, kKernel);
        multiplyLanes<kKernel, kStride, kColumns>(x, i - p.low_row, p.x.row_end, y, p.y.row_end,
                                                  sums + i * kKernel);
      }
    }
  }
}

#endif

/// Whether x and y are such, as runtime/workspace/conv_depthwise.h has them.
template <int kKernel, int kStride, typename T>
inline bool fitsLanes(const ReadPlanes<T>& x, int64_t low_column, int64_t row, int64_t row_end,
                      int64_t columns) {
  return sizeof(T) == 4 && kVectorBytes == 64 && low_column == kKernel / 2 && x.row == 0 && row == 0 &&
         columns == (x.columns + kStride - 1) / kStride && hasLaneColumns(kKernel, kStride, x.columns) &&
         fitsLanePixels(x.row_end * x.columns) && fitsLanePixels(row_end * columns);
}

/// How many planes are computed so.
template <int kKernel, int kStride, typename T>
inline int64_t sumsInLanes([[maybe_unused]] const PlaneSums<T>& p) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    if (!sumsHaveLaneColumns(kKernel, kStride, p.source.columns)) return 0;
    if (!fitsLanes<kKernel, kStride>(p.source, p.low_column, p.row, p.row_end, p.columns)) return 0;
    const int64_t planes = p.planes / kChannelLanes * kChannelLanes;
    if constexpr (kKernel == 5 && kStride == 2) return sumInLanes<5, 2, 14, false>(p), planes;
    if constexpr (kKernel == 7 && kStride == 1) return sumInLanes<7, 1, 7, false>(p), planes;
  }
#endif
  return 0;
}

template <int kKernel, typename T>
inline int64_t sumsInLanesBack([[maybe_unused]] const PlaneSums<T>& p) {
#if defined(__AVX512F__)
  if constexpr (kKernel == 5 && sizeof(T) == 4) {
    const ReadPlanes<T> x = {nullptr, 0, p.columns, p.row, p.row_end};
    if (!fitsLanes<5, 2>(x, p.low_column, p.source.row, p.source.row_end, p.source.columns)) return 0;
    return sumInLanes<5, 2, 14, true>(p), p.planes / kChannelLanes * kChannelLanes;
  }
#endif
  return 0;
}

template <int kKernel, int kStride, typename T>
inline SharedPlanes sharedPlanesInLanes(const PlaneProducts<T>& p) {
  if (!fitsLanes<kKernel, kStride>(p.x, p.low_column, p.y.row, p.y.row_end, p.y.columns)) return {};
  return SharedPlanes::by(kChannelLanes, p.planes);
}

template <int kKernel, int kStride, typename T>
inline int64_t multipliesInLanes(const PlaneProducts<T>& p) {
  const SharedPlanes shared = sharedPlanesInLanes<kKernel, kStride>(p);
  if (shared.planes == 0) return 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    if constexpr (kKernel == 5 && kStride == 2) multiplyInLanes<5, 2, 14>(p);
    if constexpr (kKernel >= 5 && kStride == 1)
      if (p.x.columns == 7) multiplyInLanes<kKernel, 1, 7>(p);
    if constexpr (kKernel == 7 && kStride == 1)
      if (p.x.columns == 14) multiplyInLanes<7, 1, 14>(p);
  }
#endif
  return shared.planes;
}

}  // namespace
}  // namespace gpuc
