// Planes by strides of one whose rows fill a vector of 64 bytes, or less: those of half a vector are two side
// by side, and columns of the filter meet lanes that are shifted in registers. Included by patch_kernels.cpp
// alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/conv/depthwise/rolling_products.h"
#include "runtime/host/conv/depthwise/rolling_sums.h"

namespace gpuc {
namespace {

/// What is asked for while two planes are computed.
constexpr int64_t kPlanesAhead = 4;

#if defined(__AVX512F__)

/// The lanes of the mask of two planes, each in its half, or of one.
template <int kPlanes, typename T>
inline Vector<T> loadPlanes(const T* row, int64_t plane, LaneMask<T> mask) {
  return kPlanes == 2 ? loadHalves<T>(row, row + plane, mask) : loadLanes<T>(row, mask);
}
template <int kPlanes, typename T>
inline void storePlanes(T* row, int64_t plane, Vector<T> v, LaneMask<T> mask) {
  kPlanes == 2 ? storeHalves<T>(row, row + plane, v, mask) : storeLanes<T>(row, v, mask);
}

/// Lanes [begin, end) of one plane, or of both: none of a plane lies beyond its half.
template <int kPlanes, typename T>
inline LaneMask<T> lanesOfPlanes(int64_t begin, int64_t end) {
  constexpr int64_t kSpan = kLanes<T> / kPlanes;
  const LaneMask<T> of_one = lanesWithin<T>(begin, end < kSpan ? end : kSpan);
  return static_cast<LaneMask<T>>(kPlanes == 2 ? of_one | of_one << kSpan : of_one);
}

/// Rows of two planes, each in its half, or of one.
template <int kPlanes, int kKernel, typename T>
struct PlanesOfVector {
  static constexpr bool kAsks = true;
  static constexpr int kSpan = kLanes<T> / kPlanes;
  int64_t from_plane, to_plane;
  LaneMask<T> read, kept;           // of a row of each plane
  LaneMask<T> inside[kKernel];      // lanes whose column of the filter meets one of the row
  LaneNumbers<T> numbers[kKernel];  // where that is

  explicit PlanesOfVector(const PlaneSums<T>& p)
      : PlanesOfVector(p.source, p.low_column, p.columns, p.result_plane) {}
  /// Of x, and in the place of what is stored y.
  explicit PlanesOfVector(const PlaneProducts<T>& p)
      : PlanesOfVector(p.x, p.low_column, p.y.columns, p.y.plane) {}
  PlanesOfVector(const ReadPlanes<T>& source, int64_t low, int64_t columns, int64_t result_plane)
      : from_plane(source.plane),
        to_plane(result_plane),
        read(lanesWithin<T>(0, source.columns)),
        kept(lanesWithin<T>(0, columns)) {
    for (int64_t j = 0; j < kKernel; ++j) {
      const int64_t end = source.columns + low - j;
      inside[j] = lanesOfPlanes<kPlanes, T>(low - j, end < columns ? end : columns);
      numbers[j] = lanesFrom<T>(j - low);
      keepInRegister<T>(numbers[j], inside[j]);
    }
  }

  Vector<T> row(const T* from) const { return loadPlanes<kPlanes, T>(from, from_plane, read); }
  Vector<T> column(Vector<T> row, int j) const { return pickLanes<T>(row, numbers[j], inside[j]); }
  Vector<T> left(const T* y) const { return loadPlanes<kPlanes, T>(y, to_plane, kept); }
  void store(T* to, Vector<T> sums) const { storePlanes<kPlanes, T>(to, to_plane, sums, kept); }
};

/// The taps of two filters of 3x3, each in its half. Four of them are loaded as a quarter of a vector, whose
/// shuffles are cheap, where each one by itself would be two loads and a choice of lanes.
template <bool kFlipped, int... kTap>
inline __attribute__((always_inline)) void splatHalves(const float* filter, const float* other,
                                                       Vector<float>* taps,
                                                       std::integer_sequence<int, kTap...>) {
  constexpr int kFirst[] = {0, 4, 5};  // of each quarter: the last one ends where the filter does
  __m512 quarters[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const __m512d low =
        _mm512_castpd256_pd512((__m256d)_mm256_broadcast_ps((const __m128*)(filter + kFirst[i])));
    quarters[i] =
        (__m512)_mm512_insertf64x4(low, (__m256d)_mm256_broadcast_ps((const __m128*)(other + kFirst[i])), 1);
  }
  keepInRegisters(quarters);
  ((taps[kFlipped ? 8 - kTap : kTap] =
        (Vector<float>)_mm512_permute_ps(quarters[kTap / 4], (kTap - kFirst[kTap / 4]) * 0x55)),
   ...);
}

/// The taps of two planes, each in its half, or of one.
template <int kPlanes, int kKernel, typename T>
inline __attribute__((always_inline)) void splatTapsOf(const PlaneSums<T>& p, int64_t plane,
                                                       Vector<T>* taps) {
  constexpr int kTaps = kKernel * kKernel;
  const T *filter = p.filter + plane * p.filter_plane, *other = filter + p.filter_plane;
  if constexpr (kPlanes == 1) {
    splatTaps<kKernel>(p, plane, taps);
  } else if constexpr (kTaps == 9 && sizeof(T) == 4) {
    constexpr std::make_integer_sequence<int, kTaps> kEach;
    p.flipped ? splatHalves<true>(filter, other, taps, kEach)
              : splatHalves<false>(filter, other, taps, kEach);
  } else {
    splatTaps<kKernel>(p, plane, taps);
    LaneMask<T> of_other = lanesWithin<T>(kLanes<T> / 2, kLanes<T>);
    keepInRegister<T>(of_other);  // lest the compiler makes a shuffle of it
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap)
      taps[tap] = mergeSplat<T>(taps[tap], other[p.flipped ? kTaps - 1 - tap : tap], of_other);
  }
}

template <int kPlanes, int kKernel, typename T>
inline void sumPlanesOfVector(const PlaneSums<T>& p) {
  const PlanesOfVector<kPlanes, kKernel, T> lanes(p);
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    Vector<T> taps[kKernel * kKernel];
    splatTapsOf<kPlanes, kKernel>(p, plane, taps);
    RollingStrip<T> strip = rollingStrip<kKernel, 1>(p, plane);
    strip.from += p.low_column;
    strip.read_next = p.source.data + (plane + kPlanesAhead) * p.source.plane;
    strip.write_next = p.result + (plane + kPlanesAhead) * p.result_plane;
    sumStrip<kKernel>(strip, lanes, taps);
  }
}

/// The vectors of sums of two planes, half a vector each, or of one, and back.
template <int kPlanes, int kKernel, typename T>
inline __attribute__((always_inline)) void loadSumsOf(const PlaneProducts<T>& p, int64_t plane,
                                                      Vector<T> (&sums)[kKernel][kKernel]) {
  const T* lanes = p.lanes + plane * p.lanes_plane;
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap, lanes += kSumRoom<T>)
    sums[tap / kKernel][tap % kKernel] =
        loadPlanes<kPlanes, T>(lanes, p.lanes_plane, lanesWithin<T>(0, kLanes<T>));
}
template <int kPlanes, int kKernel, typename T>
inline __attribute__((always_inline)) void storeSumsOf(const PlaneProducts<T>& p, int64_t plane,
                                                       const Vector<T> (&sums)[kKernel][kKernel]) {
  T* lanes = p.lanes + plane * p.lanes_plane;
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap, lanes += kSumRoom<T>)
    storePlanes<kPlanes, T>(lanes, p.lanes_plane, sums[tap / kKernel][tap % kKernel],
                            lanesWithin<T>(0, kLanes<T>));
}

template <int kPlanes, int kKernel, typename T>
inline void multiplyPlanesOfVector(const PlaneProducts<T>& p) {
  const PlanesOfVector<kPlanes, kKernel, T> lanes(p);
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    Vector<T> sums[kKernel][kKernel];
    loadSumsOf<kPlanes, kKernel>(p, plane, sums);
    ProductStrip<T> strip = productStrip<kKernel, 1>(p, plane);
    strip.x += p.low_column;
    strip.x_next = p.x.data + (plane + kPlanesAhead) * p.x.plane;
    strip.y_next = p.y.data + (plane + kPlanesAhead) * p.y.plane;
    for (int64_t image = 0; image < p.images; ++image)
      multiplyStrip<kKernel>(strip.behind(image * p.x_image, image * p.y_image), lanes, sums);
    storeSumsOf<kPlanes, kKernel>(p, plane, sums);
  }
}

#endif

/// How many planes by strides of one are in a vector, if their rows are as wide as that; 0: none. Rows of a
/// quarter of a vector and less adjoin in one (flat_planes.h).
template <int kKernel, typename T>
constexpr int planesOfVector(int64_t columns) {
  if (!kRolls<kKernel> || columns <= kLanes<T> / 4 || columns > kLanes<T>) return 0;
  return columns <= kLanes<T> / 2 ? 2 : 1;
}

/// Calls run(p, planes), where `planes` are those of a vector, a constant: for pairs and one that is left
/// over, or one by one.
template <typename Planes, typename Run>
inline void forVectors(const Planes& p, int planes, Run run) {
  const int64_t pairs = planes == 2 ? p.planes / 2 * 2 : 0;
  if (pairs > 0) run(p, std::integral_constant<int, 2>());
  if (pairs < p.planes) run(p.from(pairs), std::integral_constant<int, 1>());
}

/// Computes them, if they are such.
template <int kKernel, typename T>
inline bool sumsPlanesOfVector(const PlaneSums<T>& p) {
  const int planes = planesOfVector<kKernel, T>(p.columns > p.source.columns ? p.columns : p.source.columns);
  if (planes == 0) return false;
#if defined(__AVX512F__)
  forVectors(p, planes, [](const PlaneSums<T>& some, auto count) {
    sumPlanesOfVector<decltype(count)::value, kKernel>(some);
  });
#endif
  return true;
}

template <int kKernel, typename T>
inline bool multipliesPlanesOfVector(const PlaneProducts<T>& p) {
  const int planes = planesOfVector<kKernel, T>(p.x.columns > p.y.columns ? p.x.columns : p.y.columns);
  if (planes == 0 || p.y.row_end - p.y.row < kKernel) return false;
#if defined(__AVX512F__)
  forVectors(p, planes, [](const PlaneProducts<T>& some, auto count) {
    multiplyPlanesOfVector<decltype(count)::value, kKernel>(some);
  });
#endif
  return true;
}

}  // namespace
}  // namespace gpuc
