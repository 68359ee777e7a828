// 3x3 planes of the sizes that networks end with, padded by one: squares of 9 to 16 pixels, or of 5 to 8,
// where two planes are side by side. How many rows there are is known when this is compiled, so that nothing
// is looked up or shifted on the way down a plane. Included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/quad_planes.h"
#include "runtime/host/conv/depthwise/vector_blocks.h"
#include "runtime/host/conv/depthwise/vector_planes.h"

namespace gpuc {
namespace {

/// A picture of kSide x kSide pixels, and its windows.
template <int kSide, int kStride>
struct SizedPlane {
  static constexpr int kWindows = (kSide + kStride - 1) / kStride;

  /// The window that row i of the filter has row r of the picture for; or -1.
  static constexpr int window(int r, int i) {
    const int first = r + 1 - i;
    return first < 0 || first % kStride != 0 || first / kStride >= kWindows ? -1 : first / kStride;
  }
  /// The last row of a window, and the first one.
  static constexpr int end(int w) { return w * kStride + 1 < kSide ? w * kStride + 1 : kSide - 1; }
  static constexpr int begin(int w) { return w == 0 ? 0 : w * kStride - 1; }
};

#if defined(__AVX512F__)

/// By strides of one the middle column of the filter meets a row as it lies.
template <int kPlanes, typename T>
struct SizedLanes : PlanesOfVector<kPlanes, 3, T> {
  using PlanesOfVector<kPlanes, 3, T>::PlanesOfVector;

  Vector<T> column(Vector<T> row, int j) const {
    if (j == 1) return row;
    return j == 0 ? shiftLanes<kLanes<T> - 1>(row, row, this->inside[0])
                  : shiftLanes<1>(row, row, this->inside[2]);
  }
};

template <int kPlanes, int kStride, typename T, typename Planes>
inline auto sizedLanes(const Planes& p) {
  if constexpr (kStride == 2)
    return StepLanes<kPlanes, 3, T>(p);
  else
    return SizedLanes<kPlanes, T>(p);
}

/// Of `lines` lines of planes that come later, those that row r of kRows asks for.
template <int kRows, int kLines, typename T>
inline __attribute__((always_inline)) void askForShare(int r, const T* read_next) {
  for (int line = r * kLines / kRows; line < (r + 1) * kLines / kRows; ++line)
    askForLines<1>(read_next + line * kLanes<T>);
}
template <int kRows, int kLines, typename T>
inline __attribute__((always_inline)) void askForShareToWrite(int r, const T* write_next) {
  for (int line = r * kLines / kRows; line < (r + 1) * kLines / kRows; ++line)
    askForLinesToWrite<1>(write_next + line * kLanes<T>);
}

template <int kPlanes, int kSide, typename T>
constexpr int kSizedLines = (kPlanes * kSide * kSide + kLanes<T> - 1) / kLanes<T>;

/// Rows that need no masks, if the compiler knows that.
template <int kPlanes, int kSide, typename T>
constexpr bool kFillsVector = kPlanes * kSide == kLanes<T>;

/// Row r of two planes, whole halves where those lie within the planes: they take no mask, but bring in what
/// is beside the row.
template <int kColumns, typename T>
inline __attribute__((always_inline)) Vector<T> loadSizedRow(const T* planes, int64_t plane, int r,
                                                             LaneMask<T> mask) {
  const T* row = planes + r * kColumns;
  if (r * kColumns + kLanes<T> / 2 <= kColumns * kColumns) return loadHalves(row, row + plane);
  return loadHalves<T>(row, row + plane, mask);
}

/// Of pictures, and of windows.
template <int kPlanes, int kSide, int kStride, typename Lanes, typename T>
inline __attribute__((always_inline)) auto sizedRow(const Lanes& lanes, const T* planes, int r) {
  if constexpr (kPlanes == 2 && kStride == 1)
    return loadSizedRow<kSide>(planes, lanes.from_plane, r, lanes.read);
  else
    return lanes.row(planes + r * kSide);
}
template <int kPlanes, int kWindows, typename Lanes, typename T>
inline __attribute__((always_inline)) Vector<T> sizedLeft(const Lanes& lanes, const T* planes, int w) {
  if constexpr (kPlanes == 2)
    return loadSizedRow<kWindows>(planes, lanes.to_plane, w, lanes.kept);
  else
    return lanes.left(planes + w * kWindows);
}

/// Planes of one image. Sums of the middle column of the filter are apart, lest each waits for nine
/// multiply-adds of its own.
template <int kPlanes, int kSide, int kStride, typename Lanes, typename T>
inline __attribute__((always_inline)) void sumSizedRows(const Lanes& lanes, const Vector<T>* taps,
                                                        const T* from, T* to, const T* read_next,
                                                        const T* write_next) {
  using Plane = SizedPlane<kSide, kStride>;
  constexpr int kWindows = Plane::kWindows;
  Vector<T> sums[2][kWindows] = {};
#pragma unroll
  for (int r = 0; r < kSide; ++r) {
    const auto row = sizedRow<kPlanes, kSide, kStride>(lanes, from, r);
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const Vector<T> x = lanes.column(row, j);
#pragma unroll
      for (int i = 0; i < 3; ++i)
        if (const int w = Plane::window(r, i); w >= 0)
          sums[j == 1][w] = multiplyAdd<T>(taps[3 * i + j], x, sums[j == 1][w]);
    }
#pragma unroll
    for (int w = 0; w < kWindows; ++w)
      if (Plane::end(w) == r) lanes.store(to + w * kWindows, sums[0][w] + sums[1][w]);
    askForShare<kSide, kSizedLines<kPlanes, kSide, T>>(r, read_next);
    askForShareToWrite<kSide, kSizedLines<kPlanes, kWindows, T>>(r, write_next);
  }
}

template <int kPlanes, int kSide, int kStride, typename T>
inline void sumSized(PlaneSums<T> p) {
  if constexpr (kFillsVector<kPlanes, kSide, T>) p.source.columns = kSide, p.columns = kSide / kStride;
  const auto lanes = sizedLanes<kPlanes, kStride, T>(p);
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    Vector<T> taps[9];
    splatTapsOf<kPlanes, 3>(p, plane, taps);
    const T* from = p.source.data + plane * p.source.plane;
    T* to = p.result + plane * p.result_plane;
    sumSizedRows<kPlanes, kSide, kStride>(lanes, taps, from, to, from + 2 * kPlanes * p.source.plane,
                                          to + 2 * kPlanes * p.result_plane);
  }
}

/// Of one image. Lanes beside a row of pairs have sums of whatever is there. Of odd rows of windows of single
/// planes sums are apart, lest they wait for those of even ones.
template <int kPlanes, int kSide, int kStride, typename Lanes, typename T>
inline __attribute__((always_inline)) void addSizedProducts(const Lanes& lanes, const T* x, const T* y,
                                                            const T* x_next, const T* y_next,
                                                            Vector<T> (&sums)[3][3]) {
  using Plane = SizedPlane<kSide, kStride>;
  constexpr int kWindows = Plane::kWindows;
  constexpr bool kApart = kPlanes == 1;
  Vector<T> left[kWindows], odd[3][3] = {};
#pragma unroll
  for (int r = 0; r < kSide; ++r) {
#pragma unroll
    for (int w = 0; w < kWindows; ++w)
      if (Plane::begin(w) == r) left[w] = sizedLeft<kPlanes, kWindows>(lanes, y, w);
    const auto row = sizedRow<kPlanes, kSide, kStride>(lanes, x, r);
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const Vector<T> right = lanes.column(row, j);
#pragma unroll
      for (int i = 0; i < 3; ++i)
        if (const int w = Plane::window(r, i); w >= 0) {
          Vector<T>& sum = kApart && w % 2 ? odd[i][j] : sums[i][j];
          sum = multiplyAdd<T>(left[w], right, sum);
        }
    }
    askForShare<kSide, kSizedLines<kPlanes, kSide, T>>(r, x_next);
    askForShare<kSide, kSizedLines<kPlanes, kWindows, T>>(r, y_next);
  }
  if constexpr (!kApart) return;
#pragma unroll
  for (int tap = 0; tap < 9; ++tap) sums[tap / 3][tap % 3] += odd[tap / 3][tap % 3];
}

template <int kPlanes, int kSide, int kStride, typename T>
inline void multiplySized(PlaneProducts<T> p) {
  if constexpr (kFillsVector<kPlanes, kSide, T>) p.x.columns = kSide, p.y.columns = kSide / kStride;
  const auto lanes = sizedLanes<kPlanes, kStride, T>(p);
  const LaneMask<T> inside = lanesOfPlanes<kPlanes, T>(0, p.y.columns);
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    Vector<T> sums[3][3];
    T* lanes_of = p.lanes + plane * p.lanes_plane;
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) sums[tap / 3][tap % 3] = load(lanes_of + tap * kSumRoom<T>);
    const T *x = p.x.data + plane * p.x.plane, *y = p.y.data + plane * p.y.plane;
    for (int64_t image = 0; image < p.images; ++image, x += p.x_image, y += p.y_image)
      addSizedProducts<kPlanes, kSide, kStride>(lanes, x, y, x + kPlanes * p.x.plane, y + kPlanes * p.y.plane,
                                                sums);
#pragma unroll
    for (int tap = 0; tap < 9; ++tap)
      store(lanes_of + tap * kSumRoom<T>, keepLanes<T>(sums[tap / 3][tap % 3], inside));
  }
}

/// The cotangent of a picture by strides of two: even columns meet the window that lies upon them, and odd
/// ones the two beside them.
template <int kPlanes, int kSide, typename T>
inline __attribute__((always_inline)) void sumSizedRowsBack(const PickedStepsBack<kPlanes, true, T>& lanes,
                                                            const Vector<T>* taps, const T* from, T* to,
                                                            const T* read_next, const T* write_next) {
  constexpr int kWindows = SizedPlane<kSide, 2>::kWindows;
  Vector<T> even[kSide] = {}, odd[kSide] = {};
#pragma unroll
  for (int w = 0; w < kWindows; ++w) {
    const Vector<T> windows = loadPlanes<kPlanes, T>(from + w * kWindows, lanes.from_plane, lanes.read);
    const Vector<T> behind = pickLanes<T>(windows, lanes.numbers[0], lanes.met[0]);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const int r = 2 * w + i - 1;
      if (r < 0 || r >= kSide) continue;
      even[r] = multiplyAdd<T>(taps[3 * i + 1], windows, even[r]);
      odd[r] = multiplyAdd<T>(taps[3 * i + 2], windows, odd[r]);
      odd[r] = multiplyAdd<T>(taps[3 * i], behind, odd[r]);
    }
#pragma unroll
    for (int r = 0; r < kSide; ++r)
      if (r == 2 * w - 1 || r == 2 * w || (r == 2 * w + 1 && w + 1 == kWindows))
        lanes.store(to + r * kSide, odd[r], even[r]);
    askForShare<kWindows, kSizedLines<kPlanes, kWindows, T>>(w, read_next);
    askForShareToWrite<kWindows, kSizedLines<kPlanes, kSide, T>>(w, write_next);
  }
}

template <int kPlanes, int kSide, typename T>
inline void sumSizedBack(PlaneSums<T> p) {
  const PickedStepsBack<kPlanes, true, T> lanes(p);
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    Vector<T> taps[9];
    splatTapsOf<kPlanes, 3>(p, plane, taps);
    const T* from = p.source.data + plane * p.source.plane;
    T* to = p.result + plane * p.result_plane;
    sumSizedRowsBack<kPlanes, kSide>(lanes, taps, from, to, from + 2 * kPlanes * p.source.plane,
                                     to + 2 * kPlanes * p.result_plane);
  }
}

#endif

/// All of a square, padded by one, in f32: networks are not trained in f64.
template <int kKernel, typename T>
inline bool isSquare(const ReadPlanes<T>& x, int64_t low_row, int64_t low_column) {
  return kKernel == 3 && sizeof(T) == 4 && kVectorBytes == 64 && low_row == 1 && low_column == 1 &&
         x.row == 0 && x.row_end == x.columns;
}

/// Runs a kernel of one image.
template <typename T, typename Run>
inline void forImages(const PlaneSums<T>& p, Run run) {
  for (int64_t image = 0; image < p.images; ++image) run(p.ofImage(image));
}

/// Squares by strides of one of which there are kernels: of up to half a vector two are side by side.
constexpr int kLeastSide = 5, kMostSide = 16;
template <typename T>
constexpr int planesOfSide(int64_t side) {
  return side < kLeastSide || side > kMostSide ? 0 : side <= kLanes<T> / 2 ? 2 : 1;
}

/// Calls run with the side as a constant.
template <typename Run, int... kSide>
inline void withSide(int64_t side, const Run& run, std::integer_sequence<int, kSide...>) {
  ((side == kLeastSide + kSide ? run(std::integral_constant<int, kLeastSide + kSide>()) : void()), ...);
}
template <typename Run>
inline void withSide(int64_t side, const Run& run) {
  withSide(side, run, std::make_integer_sequence<int, kMostSide - kLeastSide + 1>());
}

/// Computes planes of which there are kernels, two by two, but for a last one that is left over, with which
/// others go on: how many.
template <int kKernel, int kStride, typename T>
inline int64_t sumsSized([[maybe_unused]] const PlaneSums<T>& p) {
#if defined(__AVX512F__)
  if constexpr (kKernel == 3 && sizeof(T) == 4) {
    const int64_t side = p.source.columns, windows = (side + kStride - 1) / kStride;
    if (!isSquare<kKernel>(p.source, p.low_row, p.low_column)) return 0;
    if (p.row != 0 || p.row_end != windows || p.columns != windows) return 0;
    if constexpr (kStride == 2)
      return side == 14 ? (forImages(p, sumSized<2, 14, 2, T>), p.planes / 2 * 2) : 0;
    if (side == 4) return p.flipped ? sumQuads<true>(p) : sumQuads<false>(p), p.planes / 4 * 4;
    const int planes = planesOfSide<T>(side);
    if (planes == 0) return 0;
    withSide(side, [&](auto known) {
      constexpr int kSide = decltype(known)::value;
      forImages(p, sumSized<planesOfSide<T>(kSide), kSide, 1, T>);
    });
    return p.planes / planes * planes;
  }
#endif
  return 0;
}

template <int kKernel, typename T>
inline int64_t sumsSizedBack([[maybe_unused]] const PlaneSums<T>& p) {
#if defined(__AVX512F__)
  if constexpr (kKernel == 3 && sizeof(T) == 4) {
    const int64_t side = p.columns, windows = p.source.columns;
    if (p.low_row != 1 || p.low_column != 1 || p.row != 0 || p.row_end != side) return 0;
    if (windows != (side + 1) / 2 || p.source.row != 0 || p.source.row_end != windows) return 0;
    if (side == 14) return forImages(p, sumSizedBack<2, 14, T>), p.planes / 2 * 2;
  }
#endif
  return 0;
}

template <int kKernel, int kStride, typename T>
inline SharedPlanes sharedPlanesSized(const PlaneProducts<T>& p) {
  const int64_t side = p.x.columns, windows = (side + kStride - 1) / kStride;
  if (!isSquare<kKernel>(p.x, p.low_row, p.low_column)) return {};
  if (p.y.row != 0 || p.y.row_end != windows || p.y.columns != windows) return {};
  if (kStride == 2) return side == 14 ? SharedPlanes::by(2, p.planes) : SharedPlanes{};
  if (side == 4) return SharedPlanes::by(4, p.planes);
  return planesOfSide<T>(side) > 0 ? SharedPlanes::by(planesOfSide<T>(side), p.planes) : SharedPlanes{};
}

template <int kKernel, int kStride, typename T>
inline int64_t multipliesSized(const PlaneProducts<T>& p) {
  const SharedPlanes shared = sharedPlanesSized<kKernel, kStride>(p);
  if (shared.planes == 0) return 0;
#if defined(__AVX512F__)
  if constexpr (kKernel == 3 && kStride == 1 && sizeof(T) == 4) {
    if (p.x.columns == 4) multiplyQuads(p);
    withSide(p.x.columns, [&](auto known) {
      constexpr int kSide = decltype(known)::value;
      multiplySized<planesOfSide<T>(kSide), kSide, 1>(p);
    });
  }
  if constexpr (kKernel == 3 && kStride == 2 && sizeof(T) == 4) multiplySized<2, 14, 2>(p);
#endif
  return shared.planes;
}

}  // namespace
}  // namespace gpuc
