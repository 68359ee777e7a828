// The cotangent of a picture by 5x5 filters and strides of two, padded by half of the filter, of f32: down
// whole planes, two rows of the picture at a time, whose even and odd columns are summed up apart; two
// vectors of each at once, of one plane or of two. A row of windows is loaded once, shifted in registers, and
// stays for three pairs of rows. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/large_step_sums.h"

namespace gpuc {
namespace {

#if defined(__AVX512F__)

/// Windows that columns 0 and 1, 2 and 3, and 4 of the filter bring to pairs of columns.
struct ShiftedWindows {
  Vector<float> columns[3][2];
};

/// kTwoPlanes: each vector is of a plane of its own.
template <bool kTwoPlanes>
struct LargeStepsBack {
  static constexpr int kKernel = 5;
  int64_t y_other, x_other, filter_other;  // from the first vector's to the second one's
  LaneMask<float> read[2], kept[4];

  explicit LargeStepsBack(const PlaneSums<float>& p) {
    const int64_t lanes = kLanes<float>;
    y_other = kTwoPlanes ? p.source.plane : lanes, x_other = kTwoPlanes ? p.result_plane : 2 * lanes;
    filter_other = kTwoPlanes ? p.filter_plane : 0;
    for (int v = 0; v < 2; ++v) {
      const int64_t before = kTwoPlanes ? 0 : v * lanes;  // windows
      read[v] = lanesWithin<float>(0, p.source.columns - before);
      kept[2 * v] = lanesWithin<float>(0, p.columns - 2 * before);
      kept[2 * v + 1] = lanesWithin<float>(0, p.columns - 2 * before - lanes);
    }
  }

  inline __attribute__((always_inline)) ShiftedWindows row(const float* y) const {
    const Vector<float> none = {};
    ShiftedWindows met;
#pragma unroll
    for (int v = 0; v < 2; ++v) met.columns[1][v] = loadLanes<float>(y + v * y_other, read[v]);
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const Vector<float> here = met.columns[1][v];
      met.columns[0][v] = shiftLanes<1>(here, kTwoPlanes || v == 1 ? none : met.columns[1][1]);
      met.columns[2][v] =
          shiftLanes<kLanes<float> - 1>(kTwoPlanes || v == 0 ? none : met.columns[1][0], here);
    }
    return met;
  }

  /// Adds what row i of the filter brings.
  inline __attribute__((always_inline)) void add(const ShiftedWindows& y, const float* filter, int i,
                                                 StepSums& sums) const {
#pragma unroll
    for (int j = 0; j < kKernel; ++j)
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const Vector<float> tap = splat<float>(filter[v * filter_other + i * kKernel + j]);
        Vector<float>& sum = j % 2 ? sums.odd[v] : sums.even[v];
        sum = multiplyAdd<float>(tap, y.columns[j / 2][v], sum);
      }
  }

  inline __attribute__((always_inline)) void store(float* x, const StepSums& sums) const {
    constexpr int kHalf = kLanes<float> / 2;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      float* to = x + v * x_other;
      storeLanes<float>(to, alternate<0, float>(sums.even[v], sums.odd[v], LaneIndices<float>()),
                        kept[2 * v]);
      storeLanes<float>(to + kLanes<float>,
                        alternate<kHalf, float>(sums.even[v], sums.odd[v], LaneIndices<float>()),
                        kept[2 * v + 1]);
    }
  }

  /// What is read and written some rows later.
  inline __attribute__((always_inline)) void ask(const float* y, const float* x) const {
    constexpr int64_t kAhead = kProductsAhead<float>;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      askForLines<1>(y + v * y_other + kAhead);
      askForLinesToWrite<4>(x + v * x_other * (kTwoPlanes ? 1 : 2) + kAhead);
    }
  }
};

template <bool kTwoPlanes>
inline void sumLargeStepsBack(const PlaneSums<float>& p) {
  constexpr int kPlanes = kTwoPlanes ? 2 : 1;
  const LargeStepsBack<kTwoPlanes> steps(p);
  const int64_t windows = p.source.row_end, rows = p.row_end;
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    const float *y = p.source.data + plane * p.source.plane, *filter = p.filter + plane * p.filter_plane;
    float* x = p.result + plane * p.result_plane;
    ShiftedWindows above, here = steps.row(y), below = here;
#pragma clang loop unroll(disable)
    for (int64_t w = 0; w < windows; ++w, x += 2 * p.columns) {
      steps.ask(y, x);
      y += p.source.columns;
      StepSums even, odd;  // rows of the picture
      if (w + 1 < windows) {
        below = steps.row(y);
        steps.add(below, filter, 0, even), steps.add(below, filter, 1, odd);
      }
      steps.add(here, filter, 2, even), steps.add(here, filter, 3, odd);
      if (w > 0) steps.add(above, filter, 4, even);
      steps.store(x, even);
      if (2 * w + 1 < rows) steps.store(x + p.columns, odd);
      above = here, here = below;
    }
  }
}

#endif

/// Computes them, if they are such, but for one that may be left over: how many.
template <int kKernel, typename T>
inline int64_t sumsLargeStepsBack([[maybe_unused]] const PlaneSums<T>& p) {
#if defined(__AVX512F__)
  if constexpr (kKernel == 5 && sizeof(T) == 4) {
    const int planes = planesOfLargeSteps<kKernel, T>(p.low_row, p.low_column, p.columns, p.row, p.row_end,
                                                      p.source.columns, p.source.row, p.source.row_end);
    if (planes == 0) return 0;
    planes == 2 ? forImages(p, sumLargeStepsBack<true>) : forImages(p, sumLargeStepsBack<false>);
    return p.planes / planes * planes;
  }
#endif
  return 0;
}

}  // namespace
}  // namespace gpuc
