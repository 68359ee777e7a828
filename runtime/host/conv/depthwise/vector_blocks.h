// Large filters, padded so that there are as many windows as pixels, or half as many by strides of two, whose
// rows fill a vector of 64 bytes, or half of one, where two planes are side by side: blocks of rows whose
// sums stay in registers, as do the rows that they read, while one column of the filter after another meets
// them. Which rows are missing above and below is known when this is compiled. Included by patch_kernels.cpp
// alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/vector_plane_steps.h"
#include "runtime/host/conv/depthwise/vector_planes.h"

namespace gpuc {
namespace {

/// Rows of a block, and of one of a plane alone in its vector, if it is whole. Planes of four rows and more
/// fall into such.
constexpr int64_t kLeastBlockRows = 4, kMostBlockRows = 8, kMostWholeRows = 16;

/// Of which filters there are kernels: networks have no others.
template <int kKernel, int kStride, typename T>
constexpr bool kHasBlocks = sizeof(T) == 4 && (kKernel == 5 || (kKernel == 7 && kStride == 1));

/// How many planes are in a vector of so many columns of windows, if the padding is that of the filter; or 0.
template <int kKernel, int kStride, typename T>
inline int planesOfBlocks(const ReadPlanes<T>& source, int64_t low_row, int64_t low_column, int64_t columns,
                          int64_t row, int64_t row_end) {
  constexpr int64_t kPad = kKernel / 2;
  if (kVectorBytes < 64 || !kHasBlocks<kKernel, kStride, T>) return 0;
  if (low_row != kPad || low_column != kPad || columns != (source.columns + kStride - 1) / kStride) return 0;
  if (row != 0 || source.row != 0 || row_end != (source.row_end + kStride - 1) / kStride) return 0;
  if (row_end < kLeastBlockRows) return 0;
  if (kStride == 2) return planesPicked<T>(columns, source.columns);
  // Planes of one vector are better met tap by tap (flat_planes.h).
  if (columns <= kLanes<T> / 4 || columns > kLanes<T>) return 0;
  return columns <= kLanes<T> / 2 ? 2 : 1;
}

#if defined(__AVX512F__)

/// By strides of two, whose rows are two vectors.
template <int kPlanes, int kKernel, typename T>
struct StepLanes : PickedSteps<kPlanes, kKernel, T> {
  using Steps = PickedSteps<kPlanes, kKernel, T>;

  explicit StepLanes(const PlaneSums<T>& p) : Steps(p.source, p.low_column, p.columns, p.result_plane) {}
  explicit StepLanes(const PlaneProducts<T>& p) : Steps(p.x, p.low_column, p.y.columns, p.y.plane) {}
  typename Steps::Both row(const T* from) const { return this->both(from); }
};

/// Of one plane a column is loaded, which memory has time for; of two, and by strides, it is picked.
template <int kPlanes, int kKernel, int kStride, typename T>
inline auto lanesOfBlocks(const PlaneSums<T>& p) {
  if constexpr (kStride == 2)
    return StepLanes<kPlanes, kKernel, T>(p);
  else if constexpr (kPlanes == 1)
    return lanesInside<kKernel>(p, 0);
  else
    return PlanesOfVector<kPlanes, kKernel, T>(p);
}

/// Of the rows that a block of kRows meets, from the first tap of the first one on, those that are there: all
/// but the padding above the plane and what is missing below.
template <int kKernel, int kStride, int kRows, bool kFirst, int kMissing>
struct BlockRows {
  static constexpr int kBegin = kFirst ? kKernel / 2 : 0;
  static constexpr int kEnd = (kRows - 1) * kStride + kKernel - kMissing;
  /// Whether row r is met by row i of the filter, and in which row of windows.
  static constexpr bool meets(int r, int i) {
    return r >= i && (r - i) % kStride == 0 && (r - i) / kStride < kRows;
  }
  static constexpr int window(int r, int i) { return (r - i) / kStride; }
};

/// How many rows the last window lacks: by strides of two one less, if the picture has an even number.
template <int kKernel, int kStride, bool kEven>
constexpr int kRowsMissing = kKernel / 2 - (kStride == 2 && kEven ? 1 : 0);

/// Calls run.template operator()<kRows, kFirst, kLast>(row) for each block of a plane of so many rows.
template <typename Run>
inline __attribute__((always_inline)) void forBlocks(int64_t rows, const Run& run) {
  auto runSized = [&]<int kRows>(int64_t row) __attribute__((always_inline)) {
    const bool last = row + kRows == rows;
    if (row == 0)
      last ? run.template operator()<kRows, true, true>(row)
           : run.template operator()<kRows, true, false>(row);
    else
      last ? run.template operator()<kRows, false, true>(row)
           : run.template operator()<kRows, false, false>(row);
  };
  const int64_t blocks = (rows + kMostBlockRows - 1) / kMostBlockRows;
  for (int64_t block = 0, row = 0; block < blocks; ++block) {
    const int64_t size = rows / blocks + (block < rows % blocks ? 1 : 0);
    switch (size) {
      case 4:
        runSized.template operator()<4>(row);
        break;
      case 5:
        runSized.template operator()<5>(row);
        break;
      case 6:
        runSized.template operator()<6>(row);
        break;
      case 7:
        runSized.template operator()<7>(row);
        break;
      default:
        runSized.template operator()<8>(row);
        break;
    }
    row += size;
  }
}

/// The same, where planes of some sizes are one block.
template <typename Run>
inline __attribute__((always_inline)) void forWholeOrBlocks(int64_t rows, const Run& run) {
  switch (rows) {
    case 10:
      return run.template operator()<10, true, true>(0);
    case 12:
      return run.template operator()<12, true, true>(0);
    case 14:
      return run.template operator()<14, true, true>(0);
    case 16:
      return run.template operator()<16, true, true>(0);
    default:
      return forBlocks(rows, run);
  }
}

/// The taps of a column of the filter of two planes, each in its half, or of one.
template <int kPlanes, int kKernel, typename T>
struct ColumnTaps {
  using Element = T;
  const T *first, *other;
  int64_t step;  // from one to the next

  inline __attribute__((always_inline)) Vector<T> at(int64_t row, int64_t column) const {
    const int64_t tap = (row * kKernel + column) * step;
    const Vector<T> of_first = splat<T>(first[tap]);
    if constexpr (kPlanes == 1) return of_first;
    return mergeSplat<T>(of_first, other[tap], lanesWithin<T>(kLanes<T> / 2, kLanes<T>));
  }
};

/// Adds what column j of the filter meets.
template <int kKernel, typename Rows, typename Row, typename Lanes, typename Taps, int kRows>
inline __attribute__((always_inline)) void addColumn(const Row* rows, const Lanes& lanes, const Taps& taps,
                                                     int j, Vector<typename Taps::Element> (&sums)[kRows]) {
  using T = typename Taps::Element;

  Vector<T> column[kKernel];
#pragma unroll
  for (int i = 0; i < kKernel; ++i) column[i] = taps.at(i, j);
#pragma unroll
  for (int r = Rows::kBegin; r < Rows::kEnd; ++r) {
    const Vector<T> x = lanes.column(rows[r], j);
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
      if (Rows::meets(r, i))
        sums[Rows::window(r, i)] = multiplyAdd<T>(column[i], x, sums[Rows::window(r, i)]);
  }
}

/// Sums of kRows rows. `from` is that of the first tap of the first one. Those of even and of odd columns of
/// the filter are apart where there are few, lest one waits for the other.
template <int kKernel, typename Rows, int kRows, typename Lanes, typename Taps, typename T>
__attribute__((noinline)) void sumRows(const T* from, int64_t columns, const Lanes& lanes, const Taps& taps,
                                       T* to, int64_t to_columns, const T* read_next, const T* write_next) {
  constexpr bool kApart = kRows <= kMostBlockRows;
  constexpr int kAsked = (kRows + kKernel / 2 - 1) / (kKernel / 2);
  decltype(lanes.row(from)) rows[Rows::kEnd];
  Vector<T> sums[kRows] = {}, odd[kRows] = {};
#pragma unroll
  for (int r = Rows::kBegin; r < Rows::kEnd; ++r) rows[r] = lanes.row(from + r * columns);
#pragma clang loop unroll(disable)
  for (int j = 0; j + 1 < kKernel; j += 2) {
    askForLines<kAsked>(read_next), read_next += kAsked * kLanes<T>;
    askForLinesToWrite<kAsked>(write_next), write_next += kAsked * kLanes<T>;
    addColumn<kKernel, Rows>(rows, lanes, taps, j, sums);
    addColumn<kKernel, Rows>(rows, lanes, taps, j + 1, kApart ? odd : sums);
  }
  addColumn<kKernel, Rows>(rows, lanes, taps, kKernel - 1, sums);
#pragma unroll
  for (int r = 0; r < kRows; ++r) lanes.store(to + r * to_columns, kApart ? sums[r] + odd[r] : sums[r]);
}

template <int kPlanes, int kKernel, int kStride, bool kEven, typename T>
inline void sumBlocks(const PlaneSums<T>& p) {
  constexpr int kPad = kKernel / 2;
  constexpr bool kLoads = kPlanes == 1 && kStride == 1;  // columns beside a row's begin, too
  const auto lanes = lanesOfBlocks<kPlanes, kKernel, kStride>(p);
  const int64_t columns = p.source.columns;
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    const T* filter = p.filter + plane * p.filter_plane + (p.flipped ? kKernel * kKernel - 1 : 0);
    const ColumnTaps<kPlanes, kKernel, T> taps = {filter, filter + p.filter_plane, p.flipped ? -1 : 1};
    const T* from = p.source.data + plane * p.source.plane - kPad * columns - (kLoads ? kPad : 0);
    T* to = p.result + plane * p.result_plane;
    auto sum = [&]<int kRows, bool kFirst, bool kLast>(int64_t row) __attribute__((always_inline)) {
      constexpr int kMissing = kLast ? kRowsMissing<kKernel, kStride, kEven> : 0;
      const T* read_next = from + kPlanesAhead * p.source.plane + row * kLanes<T>;
      sumRows<kKernel, BlockRows<kKernel, kStride, kRows, kFirst, kMissing>, kRows>(
          from + row * kStride * columns, columns, lanes, taps, to + row * p.columns, p.columns, read_next,
          to + kPlanesAhead * p.result_plane + row * kLanes<T>);
    };
    if constexpr (kLoads)
      forWholeOrBlocks(p.row_end, sum);
    else
      forBlocks(p.row_end, sum);
  }
}

/// The products of kRows rows of y and kColumns columns of the filter, from `first` on.
template <int kKernel, int kColumns, typename Rows, int kRows, typename Lanes, typename T>
inline __attribute__((always_inline)) void multiplyRows(const T* x, int64_t x_columns, const T* y,
                                                        int64_t y_columns, const Lanes& lanes, int first,
                                                        Vector<T> (&sums)[kKernel][kColumns]) {
  Vector<T> left[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) left[r] = lanes.left(y + r * y_columns);
#pragma unroll
  for (int r = Rows::kBegin; r < Rows::kEnd; ++r) {
    const auto row = lanes.row(x + r * x_columns);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const Vector<T> right = lanes.column(row, first + j);
#pragma unroll
      for (int i = 0; i < kKernel; ++i)
        if (Rows::meets(r, i)) sums[i][j] = multiplyAdd<T>(left[Rows::window(r, i)], right, sums[i][j]);
    }
  }
}

template <int kPlanes, int kColumns, int kKernel, int kStride, bool kEven, typename Lanes, typename T>
inline void multiplyBlockColumns(const PlaneProducts<T>& p, const Lanes& lanes, int64_t plane, int first) {
  const LaneMask<T> all = lanesWithin<T>(0, kLanes<T>);
  T* place = p.lanes + plane * p.lanes_plane + first * kSumRoom<T>;
  Vector<T> sums[kKernel][kColumns];
#pragma unroll
  for (int t = 0; t < kKernel * kColumns; ++t)
    sums[t / kColumns][t % kColumns] = loadPlanes<kPlanes, T>(
        place + (t / kColumns * kKernel + t % kColumns) * kSumRoom<T>, p.lanes_plane, all);
  constexpr int kPad = kKernel / 2;
  const T* x = p.x.data + plane * p.x.plane - kPad * p.x.columns;
  const T* y = p.y.data + plane * p.y.plane;
  for (int64_t image = 0; image < p.images; ++image, x += p.x_image, y += p.y_image)
    forBlocks(p.y.row_end,
              [&]<int kRows, bool kFirst, bool kLast>(int64_t row) __attribute__((always_inline)) {
                constexpr int kMissing = kLast ? kRowsMissing<kKernel, kStride, kEven> : 0;
                multiplyRows<kKernel, kColumns, BlockRows<kKernel, kStride, kRows, kFirst, kMissing>, kRows>(
                    x + row * kStride * p.x.columns, p.x.columns, y + row * p.y.columns, p.y.columns, lanes,
                    first, sums);
              });
#pragma unroll
  for (int t = 0; t < kKernel * kColumns; ++t)
    storePlanes<kPlanes, T>(place + (t / kColumns * kKernel + t % kColumns) * kSumRoom<T>, p.lanes_plane,
                            sums[t / kColumns][t % kColumns], all);
}

template <int kPlanes, int kKernel, int kStride, bool kEven, typename T>
inline void multiplyBlocks(const PlaneProducts<T>& p) {
  constexpr int kColumns = kKernel == 7 ? 2 : 3, kRest = kKernel % kColumns;
  using Lanes =
      std::conditional_t<kStride == 2, StepLanes<kPlanes, kKernel, T>, PlanesOfVector<kPlanes, kKernel, T>>;
  const Lanes lanes(p);
  for (int64_t plane = 0; plane + kPlanes <= p.planes; plane += kPlanes) {
    for (int first = 0; first + kColumns <= kKernel; first += kColumns)
      multiplyBlockColumns<kPlanes, kColumns, kKernel, kStride, kEven>(p, lanes, plane, first);
    multiplyBlockColumns<kPlanes, kRest, kKernel, kStride, kEven>(p, lanes, plane, kKernel - kRest);
  }
}

#endif

/// Computes them, if they are such.
template <int kKernel, int kStride, typename T>
inline bool sumsBlocks(const PlaneSums<T>& p) {
  const int planes =
      planesOfBlocks<kKernel, kStride>(p.source, p.low_row, p.low_column, p.columns, p.row, p.row_end);
  if (planes == 0) return false;
#if defined(__AVX512F__)
  if constexpr (kHasBlocks<kKernel, kStride, T>)
    forVectors(p, planes, [](const PlaneSums<T>& some, auto count) {
      constexpr int kPlanes = decltype(count)::value;
      if (kStride == 2 && some.source.row_end % 2 == 0)
        return sumBlocks<kPlanes, kKernel, kStride, true>(some);
      sumBlocks<kPlanes, kKernel, kStride, false>(some);
    });
#endif
  return true;
}

template <int kKernel, int kStride, typename T>
inline bool multipliesBlocks(const PlaneProducts<T>& p) {
  const int planes =
      planesOfBlocks<kKernel, kStride>(p.x, p.low_row, p.low_column, p.y.columns, p.y.row, p.y.row_end);
  if (planes == 0) return false;
#if defined(__AVX512F__)
  if constexpr (kHasBlocks<kKernel, kStride, T>)
    forVectors(p, planes, [](const PlaneProducts<T>& some, auto count) {
      constexpr int kPlanes = decltype(count)::value;
      if (kStride == 2 && some.x.row_end % 2 == 0)
        return multiplyBlocks<kPlanes, kKernel, kStride, true>(some);
      multiplyBlocks<kPlanes, kKernel, kStride, false>(some);
    });
#endif
  return true;
}

}  // namespace
}  // namespace gpuc
