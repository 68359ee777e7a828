// Planes by strides of one whose rows fill half a vector of 64 bytes, or less: two planes are side by side in
// it, and columns of the filter meet lanes that are shifted in registers. Included by patch_kernels.cpp alone
// (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/conv/depthwise/rolling_products.h"
#include "runtime/host/conv/depthwise/rolling_sums.h"

namespace gpuc {
namespace {

#if defined(__AVX512F__)

/// The first lanes of a half.
template <typename T>
inline LaneMask<T> lanesOfHalf(int64_t columns, int half) {
  return static_cast<LaneMask<T>>(lanesWithin<T>(0, columns) << half * kLanes<T> / 2);
}

/// Rows of two planes, or of one: the masks have no lanes of the other then.
template <int kKernel, typename T>
struct TwoPlanes {
  static constexpr bool kAsks = false;
  static constexpr int kHalf = kLanes<T> / 2;
  int64_t from_plane, to_plane;
  LaneMask<T> read[2], kept[2];
  LaneMask<T> inside[kKernel];      // lanes whose column of the filter meets one of the row
  LaneNumbers<T> numbers[kKernel];  // where that is

  TwoPlanes(const PlaneSums<T>& p, int64_t planes)
      : TwoPlanes(p.source.plane, p.source.columns, p.low_column, p.columns, planes) {
    to_plane = p.result_plane;
  }
  /// Of x, and in the place of what is stored y.
  TwoPlanes(const PlaneProducts<T>& p, int64_t planes)
      : TwoPlanes(p.x.plane, p.x.columns, p.low_column, p.y.columns, planes) {
    to_plane = p.y.plane;
  }
  TwoPlanes(int64_t plane, int64_t read_columns, int64_t low, int64_t columns, int64_t planes)
      : from_plane(plane), to_plane(0) {
    for (int half = 0; half < 2; ++half) {
      read[half] = lanesOfHalf<T>(half < planes ? read_columns : 0, half);
      kept[half] = lanesOfHalf<T>(half < planes ? columns : 0, half);
    }
    for (int64_t j = 0; j < kKernel; ++j) {
      const int64_t end = read_columns + low - j;
      const LaneMask<T> met = lanesWithin<T>(low - j, end < columns ? end : columns);
      inside[j] = static_cast<LaneMask<T>>(met | met << kHalf);
      numbers[j] = lanesFrom<T>(j - low);
    }
  }

  Vector<T> row(const T* from) const { return load(from, from_plane, read); }
  Vector<T> column(Vector<T> row, int j) const { return pickLanes<T>(row, numbers[j], inside[j]); }
  Vector<T> left(const T* y) const { return load(y, to_plane, kept); }
  void store(T* to, Vector<T> sums) const {
    storeLanes<T>(to, sums, kept[0]);
    storeLanes<T>(to + to_plane - kHalf, sums, kept[1]);
  }
  static Vector<T> load(const T* from, int64_t plane, const LaneMask<T>* masks) {
    return mergeLanes<T>(loadLanes<T>(from, masks[0]), from + plane - kHalf, masks[1]);
  }
};

template <int kKernel, typename T>
inline __attribute__((always_inline)) void sumTwoPlanes(const PlaneSums<T>& p,
                                                        const TwoPlanes<kKernel, T>& lanes, int64_t plane,
                                                        int64_t planes) {
  constexpr int kTaps = kKernel * kKernel;
  const T* filter = p.filter + plane * p.filter_plane;
  Vector<T> taps[kTaps];
  const T* other = planes > 1 ? filter + p.filter_plane : filter;
  const LaneMask<T> of_other = lanesOfHalf<T>(kLanes<T> / 2, 1);
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    const int at = p.flipped ? kTaps - 1 - tap : tap;
    taps[tap] = mergeSplat<T>(splat<T>(filter[at]), other[at], of_other);
  }
  RollingStrip<T> strip = rollingStrip<kKernel>(p, plane);
  strip.from += p.low_column;
  sumStrip<kKernel>(strip, lanes, taps);
}

template <int kKernel, typename T>
void sumTwoPlanes(const PlaneSums<T>& p) {
  const TwoPlanes<kKernel, T> lanes(p, 2);
  int64_t plane = 0;
  for (; plane + 2 <= p.planes; plane += 2) sumTwoPlanes<kKernel>(p, lanes, plane, 2);
  if (plane < p.planes) sumTwoPlanes<kKernel>(p, TwoPlanes<kKernel, T>(p, 1), plane, 1);
}

/// A plane's sums are in its own half of the lanes; the others are 0.
template <int kKernel, typename T>
inline __attribute__((always_inline)) void multiplyTwoPlanes(const PlaneProducts<T>& p,
                                                             const TwoPlanes<kKernel, T>& lanes,
                                                             int64_t plane, int64_t planes) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  T* place = p.lanes + plane * p.lanes_plane;
  Vector<T> sums[kKernel][kKernel];
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap) {
    const T* at = place + tap * kRoom;
    sums[tap / kKernel][tap % kKernel] =
        mergeLanes<T>(loadLanes<T>(at, lanes.kept[0]), at + p.lanes_plane, lanes.kept[1]);
  }
  ProductStrip<T> strip = productStrip(p, plane);
  strip.x += p.low_column;
  multiplyStrip<kKernel>(strip, lanes, sums);
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap) {
    const Vector<T> sum = sums[tap / kKernel][tap % kKernel];
    storeLanes<T>(place + tap * kRoom, sum, lanes.kept[0]);
    storeLanes<T>(place + tap * kRoom + p.lanes_plane, sum, lanes.kept[1]);
  }
}

template <int kKernel, typename T>
void multiplyTwoPlanes(const PlaneProducts<T>& p) {
  const TwoPlanes<kKernel, T> lanes(p, 2);
  int64_t plane = 0;
  for (; plane + 2 <= p.planes; plane += 2) multiplyTwoPlanes<kKernel>(p, lanes, plane, 2);
  if (plane < p.planes) multiplyTwoPlanes<kKernel>(p, TwoPlanes<kKernel, T>(p, 1), plane, 1);
}

#endif

/// Rows of a quarter of a vector and less adjoin in one (flat_planes.h).
template <int kKernel, typename T>
constexpr bool isHalf(int64_t columns) {
  return kRolls<kKernel> && columns > kLanes<T> / 4 && columns <= kLanes<T> / 2;
}

/// Computes them, if they are such.
template <int kKernel, typename T>
inline bool sumsTwoPlanes(const PlaneSums<T>& p) {
  const int64_t columns = p.columns > p.source.columns ? p.columns : p.source.columns;
  if (!isHalf<kKernel, T>(columns)) return false;
#if defined(__AVX512F__)
  sumTwoPlanes<kKernel>(p);
#endif
  return true;
}

template <int kKernel, typename T>
inline bool multipliesTwoPlanes(const PlaneProducts<T>& p) {
  const int64_t columns = p.x.columns > p.y.columns ? p.x.columns : p.y.columns;
  if (!isHalf<kKernel, T>(columns) || p.y.row_end - p.y.row < kKernel) return false;
#if defined(__AVX512F__)
  multiplyTwoPlanes<kKernel>(p);
#endif
  return true;
}

}  // namespace
}  // namespace gpuc
