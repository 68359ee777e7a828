// Planes by strides of two whose rows of windows fill half a vector of 64 bytes, or less: two rows are one
// vector, and what they read of a column of the filter is picked from two rows of the picture; or, backwards,
// what the picture has of them. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"

namespace gpuc {
namespace {

/// Whether two rows of so many windows fit into a vector, and what one of them reads does. Lanes of two
/// vectors are picked in any order in vectors of 64 bytes alone.
template <int kKernel, typename T>
inline bool fitsPairs(int64_t columns, int64_t rows) {
  return kVectorBytes == 64 && rows > 1 && 2 * columns <= kLanes<T> &&
         2 * (columns - 1) + kKernel <= kLanes<T>;
}

#if defined(__AVX512F__)

/// Of a pair of rows of windows the lanes that read column j of the filter: lane l of the first row is at 2 l
/// + j in a row of the picture, that of the second likewise in another.
template <typename T>
inline LaneNumbers<T> lanesRead(int64_t columns, int64_t j) {
  using Number = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  alignas(64) Number numbers[kLanes<T>] = {};
  for (int64_t lane = 0; lane < 2 * columns; ++lane)
    numbers[lane] = static_cast<Number>(j + (lane < columns ? 2 * lane : kLanes<T> + 2 * (lane - columns)));
  return _mm512_load_si512(numbers);
}

/// What pairs of rows of windows read of planes, from kColumns columns of the filter on.
template <int kKernel, int kColumns, typename T>
struct PairReader {
  const ReadPlanes<T>& planes;
  int64_t low_row, low_column, columns;
  LaneMask<T> inside;  // of a row of the picture, from the column on that the first window begins at
  LaneNumbers<T> numbers[kColumns];
  Vector<T> rows[kKernel + 2];  // that the pair meets

  PairReader(const ReadPlanes<T>& source, int64_t row_low, int64_t column_low, int64_t windows, int first)
      : planes(source),
        low_row(row_low),
        low_column(column_low),
        columns(windows),
        inside(lanesWithin<T>(column_low, column_low + source.columns)) {
    for (int j = 0; j < kColumns; ++j) numbers[j] = lanesRead<T>(windows, first + j);
  }

  /// Loads those that the pair from `row` on meets; rows outside count as 0.
  inline __attribute__((always_inline)) void load(int64_t plane, int64_t row) {
    const int64_t top = 2 * row - low_row;
    const T* at = planes.data + plane * planes.plane + top * planes.columns - low_column;
#pragma unroll
    for (int i = 0; i < kKernel + 2; ++i) {
      const bool is_there = top + i >= planes.row && top + i < planes.row_end;
      rows[i] = is_there ? loadLanes<T>(at + i * planes.columns, inside) : Vector<T>{};
    }
  }

  /// Lanes of both rows of windows, if there are two left.
  LaneMask<T> lanes(int64_t rows_left) const {
    return lanesWithin<T>(0, rows_left > 1 ? 2 * columns : columns);
  }

  /// What tap (i, first + j) meets.
  inline __attribute__((always_inline)) Vector<T> met(int i, int j, LaneMask<T> mask) const {
    return pickLanes<T>(rows[i], rows[i + 2], numbers[j], mask);
  }
};

template <int kKernel, typename T>
void pairSums(const PlaneSums<T>& p) {
  PairReader<kKernel, kKernel, T> reader(p.source, p.low_row, p.low_column, p.columns, 0);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    const T* filter = p.filter + plane * p.filter_plane;
    // Of a large filter registers hold no taps.
    Vector<T> kept[kKernel == 3 ? 9 : 1];
    for (int tap = 0; kKernel == 3 && tap < 9; ++tap) kept[tap] = splat<T>(filter[tap]);
    auto tapOf = [&](int tap) __attribute__((always_inline)) {
      return kKernel == 3 ? kept[tap] : splat<T>(filter[tap]);
    };
    for (int64_t row = p.row; row < p.row_end; row += 2) {
      const LaneMask<T> lanes = reader.lanes(p.row_end - row);
      reader.load(plane, row);
      Vector<T> sum = {};
#pragma unroll
      for (int i = 0; i < kKernel; ++i)
#pragma unroll
        for (int j = 0; j < kKernel; ++j)
          sum = multiplyAdd<T>(tapOf(i * kKernel + j), reader.met(i, j, lanes), sum);
      storeLanes<T>(p.result + plane * p.result_plane + row * p.columns, sum, lanes);
    }
  }
}

/// The products of kColumns columns of the filter, from `first` on.
template <int kKernel, int kColumns, typename T>
void pairProductColumns(const PlaneProducts<T>& p, int first) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  PairReader<kKernel, kColumns, T> reader(p.x, p.low_row, p.low_column, p.y.columns, first);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    T* place = p.lanes + plane * p.lanes_plane + first * kRoom;
    Vector<T> sums[kKernel][kColumns];
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sums[i][j] = load(place + (i * kKernel + j) * kRoom);
    for (int64_t row = p.y.row; row < p.y.row_end; row += 2) {
      const LaneMask<T> lanes = reader.lanes(p.y.row_end - row);
      reader.load(plane, row);
      const Vector<T> y = loadLanes<T>(p.y.data + plane * p.y.plane + row * p.y.columns, lanes);
#pragma unroll
      for (int i = 0; i < kKernel; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j)
          sums[i][j] = multiplyAdd<T>(y, reader.met(i, j, lanes), sums[i][j]);
    }
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) store(place + (i * kKernel + j) * kRoom, sums[i][j]);
  }
}

/// What two rows of windows, w and w + 1, leave in four rows of the picture: row 2 w + a and column 2 q + b,
/// counted from the padding on, meet tap (2 i + a, 2 j + b) of window (w - i, q - j). A lane has a q of one
/// of the two rows, from first_column on.
template <int kKernel, typename T>
struct PairWriter {
  static constexpr int kSteps = (kKernel + 1) / 2;
  using Number = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const PlaneSums<T>& p;
  int64_t first_column, lanes_of_row;
  LaneMask<T> inside;              // of a row of windows
  LaneMask<T> met[kSteps];         // lanes whose window, j columns before, there is
  LaneNumbers<T> numbers[kSteps];  // where it lies in two rows of windows
  LaneNumbers<T> mixed[2];         // lanes of even and of odd columns that make a row of the picture

  explicit PairWriter(const PlaneSums<T>& sums)
      : p(sums),
        first_column(sums.low_column / 2),
        lanes_of_row((sums.low_column + sums.columns - 1) / 2 - first_column + 1),
        inside(lanesWithin<T>(0, sums.source.columns)) {
    alignas(64) Number lanes[kLanes<T>] = {};
    for (int j = 0; j < kSteps; ++j) {
      met[j] = 0;
      for (int64_t lane = 0; lane < 2 * lanes_of_row; ++lane) {
        const int64_t window = first_column + lane % lanes_of_row - j;
        if (window < 0 || window >= p.source.columns) continue;
        met[j] |= static_cast<LaneMask<T>>(1u << lane);
        lanes[lane] = static_cast<Number>(window + lane / lanes_of_row * kLanes<T>);
      }
      numbers[j] = _mm512_load_si512(lanes);
    }
    for (int row = 0; row < 2; ++row) {
      for (int64_t column = 0; column < p.columns; ++column) {
        const int64_t padded = column + p.low_column;
        lanes[column] = static_cast<Number>(row * lanes_of_row + padded / 2 - first_column +
                                            (padded % 2 == 0 ? 0 : kLanes<T>));
      }
      mixed[row] = _mm512_load_si512(lanes);
    }
  }

  Vector<T> load(int64_t plane, int64_t window) const {
    const bool is_there = window >= p.source.row && window < p.source.row_end;
    const T* at = p.source.data + plane * p.source.plane + window * p.source.columns;
    return is_there ? loadLanes<T>(at, inside) : Vector<T>{};
  }

  /// Both rows of windows from `window` on.
  inline __attribute__((always_inline)) void add(int64_t plane, int64_t window, const Vector<T>* taps) const {
    Vector<T> rows[kSteps + 1], sums[2][2] = {};
#pragma unroll
    for (int i = 0; i <= kSteps; ++i) rows[i] = load(plane, window + 1 - i);
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
#pragma unroll
      for (int j = 0; j < kSteps; ++j) {
        const Vector<T> y = pickLanes<T>(rows[i + 1], rows[i], numbers[j], met[j]);
#pragma unroll
        for (int a = 0; a < 2 && 2 * i + a < kKernel; ++a)
#pragma unroll
          for (int b = 0; b < 2 && 2 * j + b < kKernel; ++b)
            sums[a][b] = multiplyAdd<T>(taps[(2 * i + a) * kKernel + 2 * j + b], y, sums[a][b]);
      }
    const LaneMask<T> kept = lanesWithin<T>(0, p.columns);
    T* to = p.result + plane * p.result_plane;
#pragma unroll
    for (int row = 0; row < 2; ++row)
#pragma unroll
      for (int a = 0; a < 2; ++a)
        if (const int64_t at = 2 * (window + row) + a - p.low_row; at >= p.row && at < p.row_end)
          storeLanes<T>(to + at * p.columns, pickLanes<T>(sums[a][0], sums[a][1], mixed[row], kept), kept);
  }
};

template <int kKernel, typename T>
void pairSumsBackwards(const PlaneSums<T>& p) {
  const PairWriter<kKernel, T> writer(p);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    const T* filter = p.filter + plane * p.filter_plane;
    Vector<T> taps[kKernel * kKernel];
#pragma unroll
    for (int tap = 0; tap < kKernel * kKernel; ++tap) taps[tap] = splat<T>(filter[tap]);
    const int64_t end = (p.row_end - 1 + p.low_row) / 2 + 1;
    for (int64_t window = (p.row + p.low_row) / 2; window < end; window += 2) writer.add(plane, window, taps);
  }
}

template <int kKernel, typename T>
void pairProducts(const PlaneProducts<T>& p) {
  constexpr int kColumns = 3, kRest = kKernel % kColumns;
  for (int first = 0; first + kColumns <= kKernel; first += kColumns)
    pairProductColumns<kKernel, kColumns>(p, first);
  if constexpr (kRest > 0) pairProductColumns<kKernel, kRest>(p, kKernel - kRest);
}

#endif

/// Computes them, if they are such.
template <int kKernel, typename T>
inline bool sumsPairs(const PlaneSums<T>& p) {
  if (!fitsPairs<kKernel, T>(p.columns, p.row_end - p.row)) return false;
#if defined(__AVX512F__)
  pairSums<kKernel>(p);
#endif
  return true;
}

/// The same backwards, where a row of the picture is a vector and two rows of its windows are, too.
template <int kKernel, typename T>
inline bool sumsPairsBackwards(const PlaneSums<T>& p) {
  const int64_t windows = (p.low_column + p.columns - 1) / 2 - p.low_column / 2 + 1;
  if (kVectorBytes < 64 || p.columns > kLanes<T> || 2 * windows > kLanes<T>) return false;
#if defined(__AVX512F__)
  pairSumsBackwards<kKernel>(p);
#endif
  return true;
}

template <int kKernel, typename T>
inline bool multipliesPairs(const PlaneProducts<T>& p) {
  if (!fitsPairs<kKernel, T>(p.y.columns, p.y.row_end - p.y.row)) return false;
#if defined(__AVX512F__)
  pairProducts<kKernel>(p);
#endif
  return true;
}

}  // namespace
}  // namespace gpuc
