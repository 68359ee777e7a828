// 5x5 sums over the windows by strides of two, padded by half of the filter, of f32: down whole planes, two
// vectors of windows at once, of one plane or of two. A row of x is loaded once, its even and odd columns
// apart, which are shifted in registers for each column of the filter, and meets three rows of windows or
// two. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/large_row_products.h"
#include "runtime/host/conv/depthwise/sized_planes.h"

namespace gpuc {
namespace {

#if defined(__AVX512F__)

/// Two vectors of sums, those of even and of odd columns of the filter apart, lest one waits for the other.
struct StepSums {
  Vector<float> even[2] = {}, odd[2] = {};
};

/// What the columns of the filter meet of a row of x, for two vectors of windows.
struct StepRow {
  Vector<float> columns[5][2];
};

/// kTwoPlanes: each vector is a row of a plane of its own.
template <bool kTwoPlanes>
struct LargeSteps {
  static constexpr int kKernel = 5;
  int64_t x_columns, y_columns;
  int64_t x_other, y_other, filter_other;  // from the first vector's to the second one's
  LaneMask<float> read[4], kept[2];

  explicit LargeSteps(const PlaneSums<float>& p) : x_columns(p.source.columns), y_columns(p.columns) {
    const int64_t lanes = kLanes<float>;
    x_other = kTwoPlanes ? p.source.plane : 2 * lanes, y_other = kTwoPlanes ? p.result_plane : lanes;
    filter_other = kTwoPlanes ? p.filter_plane : 0;
    for (int v = 0; v < 2; ++v) {
      const int64_t before = kTwoPlanes ? 0 : v * lanes;  // windows
      read[2 * v] = lanesWithin<float>(0, x_columns - 2 * before);
      read[2 * v + 1] = lanesWithin<float>(0, x_columns - 2 * before - lanes);
      kept[v] = lanesWithin<float>(0, y_columns - before);
    }
  }

  inline __attribute__((always_inline)) StepRow row(const float* x) const {
    constexpr int kLast = kLanes<float> - 1;
    Vector<float> even[2], odd[2];
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const Vector<float> low = loadLanes<float>(x + v * x_other, read[2 * v]);
      const Vector<float> high = loadLanes<float>(x + v * x_other + kLanes<float>, read[2 * v + 1]);
      even[v] = everyOther<float>(low, high, LaneIndices<float>());
      odd[v] = everyOdd<float>(low, high, LaneIndices<float>());
    }
    const Vector<float> none = {};
    StepRow met;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const bool begins = kTwoPlanes || v == 0, ends = kTwoPlanes || v == 1;
      met.columns[0][v] = shiftLanes<kLast>(begins ? none : even[0], even[v]);
      met.columns[1][v] = shiftLanes<kLast>(begins ? none : odd[0], odd[v]);
      met.columns[2][v] = even[v], met.columns[3][v] = odd[v];
      met.columns[4][v] = shiftLanes<1>(even[v], ends ? none : even[1]);
    }
    return met;
  }

  /// Adds what row i of the filter brings.
  inline __attribute__((always_inline)) void add(const StepRow& x, const float* filter, int i,
                                                 StepSums& sums) const {
#pragma unroll
    for (int j = 0; j < kKernel; ++j)
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const Vector<float> tap = splat<float>(filter[v * filter_other + i * kKernel + j]);
        Vector<float>& sum = j % 2 ? sums.odd[v] : sums.even[v];
        sum = multiplyAdd<float>(tap, x.columns[j][v], sum);
      }
  }

  inline __attribute__((always_inline)) void store(float* y, const StepSums& sums) const {
#pragma unroll
    for (int v = 0; v < 2; ++v) storeLanes<float>(y + v * y_other, sums.even[v] + sums.odd[v], kept[v]);
  }

  /// What is read and written some rows later.
  inline __attribute__((always_inline)) void ask(const float* x, const float* y) const {
    constexpr int64_t kAhead = kProductsAhead<float>;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      askForLines<4>(x + v * x_other * (kTwoPlanes ? 1 : 2) + kAhead);
      askForLinesToWrite<1>(y + v * y_other + kAhead);
    }
  }
};

template <bool kTwoPlanes>
inline void sumLargeSteps(const PlaneSums<float>& p) {
  constexpr int kPlanes = kTwoPlanes ? 2 : 1;
  const LargeSteps<kTwoPlanes> steps(p);
  const int64_t windows = p.row_end, rows = p.source.row_end;
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    const float *x = p.source.data + plane * p.source.plane, *filter = p.filter + plane * p.filter_plane;
    float* y = p.result + plane * p.result_plane - p.columns;
    StepSums before, here, behind;  // of the rows of windows that begin before a row of x
#pragma clang loop unroll(disable)
    for (int64_t w = 0; w < windows; ++w, x += 2 * p.source.columns, y += p.columns) {
      steps.ask(x, y);
      const StepRow even = steps.row(x);
      behind = StepSums();
      steps.add(even, filter, 4, before), steps.add(even, filter, 2, here),
          steps.add(even, filter, 0, behind);
      if (w > 0) steps.store(y, before);
      if (2 * w + 1 < rows) {
        const StepRow odd = steps.row(x + p.source.columns);
        steps.add(odd, filter, 3, here), steps.add(odd, filter, 1, behind);
      }
      before = here, here = behind;
    }
    steps.store(y, before);
  }
}

#endif

/// How many planes at once are computed so, whose pictures have rows [row, row_end) and whose windows
/// [window, window_end); or 0.
template <int kKernel, typename T>
inline int planesOfLargeSteps(int64_t low_row, int64_t low_column, int64_t columns, int64_t row,
                              int64_t row_end, int64_t window_columns, int64_t window, int64_t window_end) {
  const int64_t lanes = kLanes<T>;
  if (kKernel != 5 || sizeof(T) != 4 || kVectorBytes < 64 || low_row != 2 || low_column != 2) return 0;
  if (window_columns != (columns + 1) / 2 || window_columns > 2 * lanes || columns <= lanes) return 0;
  if (row != 0 || window != 0 || window_end != (row_end + 1) / 2) return 0;
  return window_columns <= lanes ? 2 : 1;
}

/// Computes them but for one that may be left over: how many.
template <int kKernel, typename T>
inline int64_t sumsLargeSteps([[maybe_unused]] const PlaneSums<T>& p) {
#if defined(__AVX512F__)
  if constexpr (kKernel == 5 && sizeof(T) == 4) {
    const int planes = planesOfLargeSteps<kKernel, T>(p.low_row, p.low_column, p.source.columns, p.source.row,
                                                      p.source.row_end, p.columns, p.row, p.row_end);
    if (planes == 0) return 0;
    planes == 2 ? forImages(p, sumLargeSteps<true>) : forImages(p, sumLargeSteps<false>);
    return p.planes / planes * planes;
  }
#endif
  return 0;
}

}  // namespace
}  // namespace gpuc
