// 3x3 planes by strides of two whose rows of windows fill a vector of 64 bytes, or half of one, where two
// planes are side by side: what those read of a row of the picture is in two vectors, and each column of the
// filter picks from both. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/rolling_step_products.h"
#include "runtime/host/conv/depthwise/rolling_steps.h"
#include "runtime/host/conv/depthwise/vector_planes.h"

namespace gpuc {
namespace {

#if defined(__AVX512F__)

/// Rows of windows of two planes, each in its half, or of one; and rows of the picture, two vectors.
template <int kPlanes, int kKernel, typename T>
struct PickedSteps {
  static constexpr bool kAsks = true;
  static constexpr int kSpan = kLanes<T> / kPlanes;  // windows of a plane, at most
  int64_t second, to_plane;                          // where the second vector is, and the second plane
  LaneMask<T> read[2], kept;
  LaneMask<T> met[kKernel];         // windows whose column of the filter meets one of the row
  LaneNumbers<T> numbers[kKernel];  // where that is in the two vectors

  PickedSteps(const ReadPlanes<T>& source, int64_t low, int64_t windows, int64_t windows_plane)
      : second(kPlanes == 2 ? source.plane : kLanes<T>),
        to_plane(windows_plane),
        kept(lanesWithin<T>(0, windows)) {
    read[0] = lanesWithin<T>(0, source.columns);
    read[1] = lanesWithin<T>(0, kPlanes == 2 ? source.columns : source.columns - kLanes<T>);
    const LaneNumbers<T> first_read = steppedLanes(LaneIndices<T>());
    for (int64_t j = 0; j < kKernel; ++j) {
      const int64_t end = (source.columns + low - j + 1) / 2;
      met[j] = lanesOfPlanes<kPlanes, T>((low - j + 1) / 2, end < windows ? end : windows);
      numbers[j] = shiftNumbers<T>(first_read, j - low);
      keepInRegister<T>(numbers[j], met[j]);
    }
  }

  /// Every other element of the first vector, or of both.
  template <std::size_t... kLane>
  static LaneNumbers<T> steppedLanes(std::index_sequence<kLane...>) {
    using Number = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    alignas(64) constexpr Number kNumbers[] = {
        static_cast<Number>(kLane % kSpan * 2 + kLane / kSpan * kLanes<T>)...};
    return _mm512_load_si512(kNumbers);
  }

  struct Both {
    Vector<T> first, other;
  };
  Both both(const T* from) const {
    return {loadLanes<T>(from, read[0]), loadLanes<T>(from + second, read[1])};
  }
  Vector<T> column(const Both& row, int j) const {
    return pickLanes<T>(row.first, row.other, numbers[j], met[j]);
  }
  SteppedRow<T> row(const T* from) const {
    const Both vectors = both(from);
    return {column(vectors, 0), column(vectors, 1), column(vectors, 2)};
  }
  Vector<T> left(const T* y) const { return loadPlanes<kPlanes, T>(y, to_plane, kept); }
  void store(T* to, Vector<T> sums) const { storePlanes<kPlanes, T>(to, to_plane, sums, kept); }
};

template <int kPlanes, typename T>
inline void sumPicked(const PlaneSums<T>& p) {
  const PickedSteps<kPlanes, 3, T> steps(p.source, p.low_column, p.columns, p.result_plane);
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    Vector<T> taps[9];
    splatTapsOf<kPlanes, 3>(p, plane, taps);
    RollingStrip<T> strip = rollingStrip<3, 2>(p, plane);
    strip.from += p.low_column;
    if constexpr (kPlanes == 2) {
      strip.read_next = p.source.data + (plane + kPlanesAhead) * p.source.plane;
      strip.write_next = p.result + (plane + kPlanesAhead) * p.result_plane;
    }
    sumSteps(strip, p.row_end - p.row, steps, taps);
  }
}

template <int kPlanes, typename T>
inline void multiplyPicked(const PlaneProducts<T>& p) {
  const PickedSteps<kPlanes, 3, T> steps(p.x, p.low_column, p.y.columns, p.y.plane);
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    Vector<T> sums[3][3];
    loadSumsOf<kPlanes, 3>(p, plane, sums);
    ProductStrip<T> strip = productStrip<3, 2>(p, plane);
    strip.x += p.low_column;
    if constexpr (kPlanes == 2) {
      strip.x_next = p.x.data + (plane + kPlanesAhead) * p.x.plane;
      strip.y_next = p.y.data + (plane + kPlanesAhead) * p.y.plane;
    }
    for (int64_t image = 0; image < p.images; ++image)
      multiplySteps(strip.behind(image * p.x_image, image * p.y_image), steps, sums);
    storeSumsOf<kPlanes, 3>(p, plane, sums);
  }
}

/// Rows of windows of two planes, each in its half, or of one, and what they leave in a row of the result of
/// each. Lane l is of columns 2 l and 2 l + 1. kOdd: padding in front is odd, so that the second of these has
/// two windows.
template <int kPlanes, bool kOdd, typename T>
struct PickedStepsBack {
  static constexpr bool kAsks = kPlanes == 1;
  int64_t from_plane, second;  // to the second plane's, and where the second vector is stored
  LaneMask<T> read, met[2], kept[2];
  LaneNumbers<T> numbers[2];

  explicit PickedStepsBack(const PlaneSums<T>& p)
      : from_plane(p.source.plane),
        second(kPlanes == 2 ? p.result_plane : kLanes<T>),
        read(lanesWithin<T>(0, p.source.columns)) {
    for (int i = 0; i < 2; ++i) {
      const int64_t first = (p.low_column + 1) / 2 - i;
      met[i] = lanesOfPlanes<kPlanes, T>(-first, p.source.columns - first);
      numbers[i] = lanesFrom<T>(first);
      keepInRegister<T>(numbers[i], met[i]);
      kept[i] = lanesWithin<T>(0, p.columns - (kPlanes == 2 ? 0 : i * kLanes<T>));
    }
  }

  WindowRow<T> row(const T* at) const {
    const Vector<T> windows = loadPlanes<kPlanes, T>(at, from_plane, read);
    const Vector<T> window = pickLanes<T>(windows, numbers[0], met[0]);
    const Vector<T> before = pickLanes<T>(windows, numbers[1], met[1]);
    return {window, before, kOdd ? before : window};
  }
  void store(T* to, Vector<T> even, Vector<T> odd) const {
    const Vector<T> first = kOdd ? odd : even, other = kOdd ? even : odd;
    storeLanes<T>(to, alternate<0, T>(first, other, LaneIndices<T>()), kept[0]);
    storeLanes<T>(to + second, alternate<kLanes<T> / 2, T>(first, other, LaneIndices<T>()), kept[1]);
  }
};

template <int kPlanes, bool kOdd, typename T>
inline void sumPickedBack(const PlaneSums<T>& p) {
  const PickedStepsBack<kPlanes, kOdd, T> steps(p);
  const int64_t begin = (p.row + p.low_row) / 2, end = (p.row_end - 1 + p.low_row) / 2 + 1;
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    Vector<T> taps[9];
    splatTapsOf<kPlanes, 3>(p, plane, taps);
    const T* from = p.source.data + plane * p.source.plane;
    T* to = p.result + plane * p.result_plane;
    sumBack(p, steps, taps, begin, end, from, to - p.low_row * p.columns, from + end * p.source.columns,
            to + (p.row_end - p.row) * p.columns);
  }
}

#endif

/// How many planes are in a vector, by their windows and the columns of a picture; 0: none.
template <typename T>
inline int planesPicked(int64_t windows, int64_t columns) {
  if (kVectorBytes < 64) return 0;
  return windows <= kLanes<T> / 2 && columns <= kLanes<T>   ? 2
         : windows <= kLanes<T> && columns <= 2 * kLanes<T> ? 1
                                                            : 0;
}

/// Computes them, if they are such.
template <typename T>
inline bool sumsPicked(const PlaneSums<T>& p) {
  const int planes = planesPicked<T>(p.columns, p.source.columns);
  if (planes == 0) return false;
#if defined(__AVX512F__)
  forVectors(p, planes,
             [](const PlaneSums<T>& some, auto count) { sumPicked<decltype(count)::value>(some); });
#endif
  return true;
}

template <typename T>
inline bool multipliesPicked(const PlaneProducts<T>& p) {
  const int planes = planesPicked<T>(p.y.columns, p.x.columns);
  if (planes == 0) return false;
#if defined(__AVX512F__)
  forVectors(p, planes,
             [](const PlaneProducts<T>& some, auto count) { multiplyPicked<decltype(count)::value>(some); });
#endif
  return true;
}

template <typename T>
inline bool sumsPickedBack(const PlaneSums<T>& p) {
  const int planes = planesPicked<T>(p.source.columns, p.columns);
  if (planes == 0) return false;
#if defined(__AVX512F__)
  forVectors(p, planes, [](const PlaneSums<T>& some, auto count) {
    constexpr int kPlanes = decltype(count)::value;
    some.low_column % 2 ? sumPickedBack<kPlanes, true>(some) : sumPickedBack<kPlanes, false>(some);
  });
#endif
  return true;
}

}  // namespace
}  // namespace gpuc
