// Planes by strides of one whose rows fill at most half a vector of 64 bytes: rows that adjoin are one
// vector, of which each tap meets some lanes. Included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/matmul/dot.h"

namespace gpuc {
namespace {

constexpr int kMostFlatVectors = 8;

/// Rows [row, row_end) of planes that meet rows of others as wide, from [row - low_row] on.
struct FlatRows {
  int64_t row, row_end, columns;
  int64_t met_row, met_row_end, met_columns;
  int64_t low_row, low_column;

  int64_t elements() const { return (row_end - row) * columns; }
};

/// Whether there are half as many vectors as rows, or less. Masks of any lanes are there in vectors of 64
/// bytes alone.
template <typename T>
inline bool isFlat(const FlatRows& p) {
  const int64_t vectors = (p.elements() + kLanes<T> - 1) / kLanes<T>;
  return kVectorBytes == 64 && p.columns == p.met_columns && 2 * vectors <= p.row_end - p.row &&
         vectors <= kMostFlatVectors;
}

#if defined(__AVX512F__)

/// The vectors of the rows, and which of their lanes have an element that each tap meets.
template <int kKernel, typename T>
struct FlatMasks {
  int vectors;
  LaneMask<T> kept[kMostFlatVectors], met[kMostFlatVectors][kKernel * kKernel];

  /// Bits [begin, end) of `columns`.
  static uint64_t lanesOfRow(int64_t begin, int64_t end, int64_t columns) {
    begin = begin < 0 ? 0 : begin, end = end > columns ? columns : end;
    return begin < end ? (uint64_t{1} << end) - (uint64_t{1} << begin) : 0;
  }

  explicit FlatMasks(const FlatRows& p)
      : vectors(static_cast<int>((p.elements() + kLanes<T> - 1) / kLanes<T>)) {
    uint64_t rows[kKernel];  // the columns that each tap's column meets, row by row
    for (int64_t j = 0; j < kKernel; ++j) {
      const uint64_t of_row = lanesOfRow(p.low_column - j, p.columns + p.low_column - j, p.columns);
      rows[j] = 0;
      for (int64_t column = 0; column < 2 * kLanes<T>; column += p.columns) rows[j] |= of_row << column;
    }
    for (int v = 0; v < vectors; ++v) {
      const int64_t first = v * kLanes<T>;
      kept[v] = lanesWithin<T>(0, p.elements() - first);
      LaneMask<T> within[kKernel];
      for (int j = 0; j < kKernel; ++j) within[j] = static_cast<LaneMask<T>>(rows[j] >> first % p.columns);
      for (int i = 0; i < kKernel; ++i) {
        const int64_t top = p.row - p.low_row + i;
        const int64_t begin = std::max<int64_t>(0, p.met_row - top), rows = p.row_end - p.row;
        const LaneMask<T> of_rows = lanesWithin<T>(begin * p.columns - first,
                                                   std::min(rows, p.met_row_end - top) * p.columns - first);
        for (int j = 0; j < kKernel; ++j)
          met[v][i * kKernel + j] = static_cast<LaneMask<T>>(within[j] & of_rows & kept[v]);
      }
    }
  }
};

/// So many planes at once share what is loaded of the masks.
template <int kTaps>
constexpr int kFlatPlanes = kTaps <= 9 ? 2 : 1;

template <int kKernel, int kPlanes, typename T>
inline void flatSums(const PlaneSums<T>& p, const FlatMasks<kKernel, T>& masks, int64_t plane) {
  constexpr int kTaps = kKernel * kKernel;
  const T* from = p.source.data + plane * p.source.plane + (p.row - p.low_row) * p.columns - p.low_column;
  T* to = p.result + plane * p.result_plane + p.row * p.columns;
  Vector<T> taps[kPlanes][kTaps];
#pragma unroll
  for (int i = 0; i < kPlanes; ++i)
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap)
      taps[i][tap] = splat<T>(p.filter[(plane + i) * p.filter_plane + (p.flipped ? kTaps - 1 - tap : tap)]);
  for (int v = 0; v < masks.vectors; ++v, from += kLanes<T>, to += kLanes<T>) {
    Vector<T> sums[kPlanes] = {};
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap)
#pragma unroll
      for (int i = 0; i < kPlanes; ++i)
        sums[i] =
            multiplyAdd<T>(taps[i][tap],
                           loadLanes<T>(from + i * p.source.plane + tap / kKernel * p.columns + tap % kKernel,
                                        masks.met[v][tap]),
                           sums[i]);
#pragma unroll
    for (int i = 0; i < kPlanes; ++i) storeLanes<T>(to + i * p.result_plane, sums[i], masks.kept[v]);
  }
}

template <int kKernel, typename T>
void flatSums(const PlaneSums<T>& p, const FlatRows& rows) {
  if (isOneVector<T>(rows)) return vectorSums<kKernel>(p, rows);
  constexpr int kPlanes = kFlatPlanes<kKernel * kKernel>;
  const FlatMasks<kKernel, T> masks(rows);
  int64_t plane = 0;
  for (; plane + kPlanes <= p.planes; plane += kPlanes) flatSums<kKernel, kPlanes>(p, masks, plane);
  for (; plane < p.planes; ++plane) flatSums<kKernel, 1>(p, masks, plane);
}

//===----------------------------------------------------------------------===//
// Planes that are one vector each
//===----------------------------------------------------------------------===//

/// Whether both what is summed up and what it meets of a plane are one vector.
template <typename T>
inline bool isOneVector(const FlatRows& p) {
  return p.elements() <= kLanes<T> && (p.met_row_end - p.met_row) * p.met_columns <= kLanes<T>;
}

/// The lanes of both, and those that each tap meets: of others the number is that of a 0 behind the vector,
/// since there are not as many masks as taps.
template <int kKernel, typename T>
struct VectorPlanes {
  LaneMask<T> kept, read;
  LaneNumbers<T> numbers[kKernel * kKernel];

  explicit VectorPlanes(const FlatRows& p) : kept(lanesWithin<T>(0, p.elements())) {
    const FlatMasks<kKernel, T> masks(p);
    read = lanesWithin<T>(0, (p.met_row_end - p.met_row) * p.columns);
    for (int64_t tap = 0; tap < kKernel * kKernel; ++tap) {
      const int64_t row = p.row - p.low_row + tap / kKernel - p.met_row;
      const int64_t first = row * p.columns - p.low_column + tap % kKernel;
      numbers[tap] = mergeNumbers<T>(splatNumbers<T>(kLanes<T>), lanesFrom<T>(first), masks.met[0][tap]);
    }
  }

  Vector<T> met(Vector<T> x, int tap) const { return pickLanes<T>(x, Vector<T>{}, numbers[tap]); }
};

/// Planes that are summed up side by side, since a sum waits for the one before.
constexpr int kVectorPlanes = 4;

template <int kPlanes, int kKernel, typename T>
inline __attribute__((always_inline)) void vectorSums(const PlaneSums<T>& p, const FlatRows& rows,
                                                      const VectorPlanes<kKernel, T>& lanes, int64_t plane) {
  constexpr int kTaps = kKernel * kKernel;
  const T* from = p.source.data + plane * p.source.plane + rows.met_row * p.columns;
  const T* filter = p.filter + plane * p.filter_plane;
  Vector<T> x[kPlanes], sums[kPlanes] = {};
#pragma unroll
  for (int i = 0; i < kPlanes; ++i) x[i] = loadLanes<T>(from + i * p.source.plane, lanes.read);
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap)
#pragma unroll
    for (int i = 0; i < kPlanes; ++i)
      sums[i] = multiplyAdd<T>(splat<T>(filter[i * p.filter_plane + (p.flipped ? kTaps - 1 - tap : tap)]),
                               lanes.met(x[i], tap), sums[i]);
#pragma unroll
  for (int i = 0; i < kPlanes; ++i)
    storeLanes<T>(p.result + (plane + i) * p.result_plane + p.row * p.columns, sums[i], lanes.kept);
}

template <int kKernel, typename T>
void vectorSums(const PlaneSums<T>& p, const FlatRows& rows) {
  const VectorPlanes<kKernel, T> lanes(rows);
  int64_t plane = 0;
  for (; plane + kVectorPlanes <= p.planes; plane += kVectorPlanes)
    vectorSums<kVectorPlanes, kKernel>(p, rows, lanes, plane);
  for (; plane < p.planes; ++plane) vectorSums<1, kKernel>(p, rows, lanes, plane);
}

/// The products of kColumns columns of the filter, from `first` on, of one plane of all images.
template <int kKernel, int kColumns, typename T>
inline __attribute__((always_inline)) void vectorProducts(const PlaneProducts<T>& p, const FlatRows& rows,
                                                          const VectorPlanes<kKernel, T>& lanes, int first,
                                                          int64_t plane) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  constexpr int kTaps = kKernel * kColumns;
  const T* x = p.x.data + plane * p.x.plane + rows.met_row * p.x.columns;
  const T* y = p.y.data + plane * p.y.plane + p.y.row * p.y.columns;
  T* place = p.lanes + plane * p.lanes_plane + first * kRoom;
  Vector<T> sums[kTaps];
  auto room = [](int t) { return (t / kColumns * kKernel + t % kColumns) * kRoom; };
#pragma unroll
  for (int t = 0; t < kTaps; ++t) sums[t] = load(place + room(t));
  for (int64_t image = 0; image < p.images; ++image, x += p.x_image, y += p.y_image) {
    askForLines<1>(x + 4 * p.x.plane), askForLines<1>(y + 4 * p.y.plane);
    const Vector<T> right = loadLanes<T>(x, lanes.read), left = loadLanes<T>(y, lanes.kept);
#pragma unroll
    for (int t = 0; t < kTaps; ++t)
      sums[t] =
          multiplyAdd<T>(left, lanes.met(right, t / kColumns * kKernel + first + t % kColumns), sums[t]);
  }
#pragma unroll
  for (int t = 0; t < kTaps; ++t) store(place + room(t), sums[t]);
}

template <int kKernel, typename T>
void vectorProducts(const PlaneProducts<T>& p, const FlatRows& rows) {
  constexpr int kColumns = kKernel == 7 ? 2 : 3, kRest = kKernel % kColumns;
  const VectorPlanes<kKernel, T> lanes(rows);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    for (int first = 0; first + kColumns <= kKernel; first += kColumns)
      vectorProducts<kKernel, kColumns>(p, rows, lanes, first, plane);
    if constexpr (kRest > 0) vectorProducts<kKernel, kRest>(p, rows, lanes, kKernel - kRest, plane);
  }
}

/// The products of kColumns columns of the filter, from `first` on.
template <int kKernel, int kColumns, int kPlanes, typename T>
inline void flatProducts(const PlaneProducts<T>& p, const FlatMasks<kKernel, T>& masks, int first,
                         int64_t plane) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  constexpr int kTaps = kKernel * kColumns;
  const T* y = p.y.data + plane * p.y.plane + p.y.row * p.y.columns;
  const T* x = p.x.data + plane * p.x.plane + (p.y.row - p.low_row) * p.x.columns - p.low_column + first;
  T* lanes = p.lanes + plane * p.lanes_plane + first * kRoom;
  auto place = [&](int i, int t) __attribute__((always_inline)) {
    return lanes + i * p.lanes_plane + (t / kColumns * kKernel + t % kColumns) * kRoom;
  };
  Vector<T> sums[kPlanes][kTaps];
#pragma unroll
  for (int i = 0; i < kPlanes; ++i)
#pragma unroll
    for (int t = 0; t < kTaps; ++t) sums[i][t] = load(place(i, t));
  for (int v = 0; v < masks.vectors; ++v, x += kLanes<T>, y += kLanes<T>) {
    Vector<T> left[kPlanes];
#pragma unroll
    for (int i = 0; i < kPlanes; ++i) left[i] = loadLanes<T>(y + i * p.y.plane, masks.kept[v]);
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      const int64_t at = t / kColumns * p.x.columns + t % kColumns;
      const LaneMask<T> met = masks.met[v][t / kColumns * kKernel + first + t % kColumns];
#pragma unroll
      for (int i = 0; i < kPlanes; ++i)
        sums[i][t] = multiplyAdd<T>(left[i], loadLanes<T>(x + i * p.x.plane + at, met), sums[i][t]);
    }
  }
#pragma unroll
  for (int i = 0; i < kPlanes; ++i)
#pragma unroll
    for (int t = 0; t < kTaps; ++t) store(place(i, t), sums[i][t]);
}

template <int kKernel, int kColumns, typename T>
void flatProductColumns(const PlaneProducts<T>& p, const FlatMasks<kKernel, T>& masks, int first) {
  constexpr int kPlanes = kFlatPlanes<kKernel * kColumns>;
  int64_t plane = 0;
  for (; plane + kPlanes <= p.planes; plane += kPlanes)
    flatProducts<kKernel, kColumns, kPlanes>(p, masks, first, plane);
  for (; plane < p.planes; ++plane) flatProducts<kKernel, kColumns, 1>(p, masks, first, plane);
}

template <int kKernel, typename T>
void flatProducts(const PlaneProducts<T>& p, const FlatRows& rows) {
  if (isOneVector<T>(rows)) return vectorProducts<kKernel>(p, rows);
  constexpr int kColumns = 3, kRest = kKernel % kColumns;
  const FlatMasks<kKernel, T> masks(rows);
  for (int64_t image = 0; image < p.images; ++image) {
    const PlaneProducts<T> one = p.ofImage(image);
    for (int first = 0; first + kColumns <= kKernel; first += kColumns)
      flatProductColumns<kKernel, kColumns>(one, masks, first);
    if constexpr (kRest > 0) flatProductColumns<kKernel, kRest>(one, masks, kKernel - kRest);
  }
}

#endif

/// Computes them, if they are such.
template <int kKernel, typename T>
inline bool sumsFlat(const PlaneSums<T>& p) {
  const FlatRows rows = {.row = p.row,
                         .row_end = p.row_end,
                         .columns = p.columns,
                         .met_row = p.source.row,
                         .met_row_end = p.source.row_end,
                         .met_columns = p.source.columns,
                         .low_row = p.low_row,
                         .low_column = p.low_column};
  if (!isFlat<T>(rows)) return false;
#if defined(__AVX512F__)
  flatSums<kKernel>(p, rows);
#endif
  return true;
}

template <int kKernel, typename T>
inline bool multipliesFlat(const PlaneProducts<T>& p) {
  const FlatRows rows = {.row = p.y.row,
                         .row_end = p.y.row_end,
                         .columns = p.y.columns,
                         .met_row = p.x.row,
                         .met_row_end = p.x.row_end,
                         .met_columns = p.x.columns,
                         .low_row = p.low_row,
                         .low_column = p.low_column};
  if (!isFlat<T>(rows)) return false;
#if defined(__AVX512F__)
  flatProducts<kKernel>(p, rows);
#endif
  return true;
}

}  // namespace
}  // namespace gpuc
