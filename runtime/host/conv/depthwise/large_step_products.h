// The gradient of a 5x5 filter by strides of two, padded by half of the filter, of one plane each, of f32,
// where a row of windows is one vector or two: even rows of the filter meet even rows of the picture, odd
// ones odd rows, each in a pass of its own, whose sums stay in registers. Included by patch_kernels.cpp alone
// (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/large_step_sums.h"

namespace gpuc {
namespace {

#if defined(__AVX512F__)

/// Rows kFirst, kFirst + 2 and so on of the filter.
template <int kFirst, int kVectors>
struct LargeStepProducts {
  static constexpr int kKernel = 5, kRows = kFirst == 0 ? 3 : 2;
  Vector<float> sums[kRows][kKernel];
  int64_t y_columns;
  LaneMask<float> read[kVectors][2], kept[kVectors];

  LargeStepProducts(const PlaneProducts<float>& p, float* lanes) : y_columns(p.y.columns) {
    const int64_t width = kLanes<float>;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      read[v][0] = lanesWithin<float>(0, p.x.columns - 2 * v * width);
      read[v][1] = lanesWithin<float>(0, p.x.columns - (2 * v + 1) * width);
      kept[v] = lanesWithin<float>(0, y_columns - v * width);
    }
#pragma unroll
    for (int t = 0; t < kRows * kKernel; ++t) sums[t / kKernel][t % kKernel] = load(sumsOf(lanes, t));
  }
  static float* sumsOf(float* lanes, int t) {
    return lanes + ((kFirst + t / kKernel * 2) * kKernel + t % kKernel) * kSumRoom<float>;
  }
  void storeTo(float* lanes) const {
#pragma unroll
    for (int t = 0; t < kRows * kKernel; ++t) store(sumsOf(lanes, t), sums[t / kKernel][t % kKernel]);
  }

  /// A row of x, and the row of y that the first of the filter's rows brings to it; those of the others lie
  /// above. Of those there are [0, windows), of which `window` is the first one's.
  inline __attribute__((always_inline)) void add(const float* x, const float* y, int64_t window,
                                                 int64_t windows) {
    constexpr int kLast = kLanes<float> - 1;
    Vector<float> even[kVectors], odd[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const Vector<float> low = loadLanes<float>(x + 2 * v * kLanes<float>, read[v][0]);
      const Vector<float> high = loadLanes<float>(x + (2 * v + 1) * kLanes<float>, read[v][1]);
      even[v] = everyOther<float>(low, high, LaneIndices<float>());
      odd[v] = everyOdd<float>(low, high, LaneIndices<float>());
    }
    const Vector<float> none = {};
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const Vector<float> columns[kKernel] = {shiftLanes<kLast>(v > 0 ? even[0] : none, even[v]),
                                              shiftLanes<kLast>(v > 0 ? odd[0] : none, odd[v]), even[v],
                                              odd[v],
                                              shiftLanes<1>(even[v], v + 1 < kVectors ? even[v + 1] : none)};
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const bool is_there = window >= i && window - i < windows;
        const LaneMask<float> there = is_there ? kept[v] : 0;
        const Vector<float> left = loadLanes<float>(y - i * y_columns + v * kLanes<float>, there);
#pragma unroll
        for (int j = 0; j < kKernel; ++j) addLanes(sums[i][j], left, columns[j], there);
      }
    }
  }
};

template <int kFirst, int kVectors>
__attribute__((noinline)) void multiplyStepRows(const PlaneProducts<float>& p, int64_t plane) {
  float* lanes = p.lanes + plane * p.lanes_plane;
  LargeStepProducts<kFirst, kVectors> rows(p, lanes);
  const float* x = p.x.data + plane * p.x.plane + kFirst * p.x.columns;
  const float* y = p.y.data + plane * p.y.plane;
#pragma clang loop unroll(disable)
  for (int64_t row = kFirst, window = 1; row < p.x.row_end; row += 2, ++window, x += 2 * p.x.columns) {
    if constexpr (kFirst == 0) askForLines<4 * kVectors>(x + kProductsAhead<float>);
    if constexpr (kFirst == 0) askForLines<kVectors>(y + kProductsAhead<float>);
    y += p.y.columns;
    rows.add(x, y, window, p.y.row_end);
  }
  rows.storeTo(lanes);
}

template <int kVectors>
inline void multiplySteps(const PlaneProducts<float>& p) {
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    multiplyStepRows<0, kVectors>(p, plane);
    multiplyStepRows<1, kVectors>(p, plane);
  }
}

#endif

/// Computes them, if they are such.
template <int kKernel, typename T>
inline bool multipliesLargeSteps([[maybe_unused]] const PlaneProducts<T>& p) {
#if defined(__AVX512F__)
  if constexpr (kKernel == 5 && sizeof(T) == 4) {
    const int planes = planesOfLargeSteps<kKernel, T>(p.low_row, p.low_column, p.x.columns, p.x.row,
                                                      p.x.row_end, p.y.columns, p.y.row, p.y.row_end);
    if (planes == 0) return false;
    for (int64_t image = 0; image < p.images; ++image)
      planes == 2 ? multiplySteps<1>(p.ofImage(image)) : multiplySteps<2>(p.ofImage(image));
    return true;
  }
#endif
  return false;
}

}  // namespace
}  // namespace gpuc
