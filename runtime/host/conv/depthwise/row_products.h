// A 3x3 filter's gradient by strides of one, padded by one, of one plane each, whose rows are longer than a
// vector: along pairs of rows of y, vector by vector, so that both pictures are read in the order in which
// they lie. A vector of y is shifted by a column either way in registers; x is loaded as it lies. Included by
// patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/rolling_products.h"

namespace gpuc {
namespace {

/// Whether planes are such: of rows of x that y's meet, those above the first and below the last one alone
/// may be missing.
template <typename T>
inline bool hasPaddedRows(const PlaneProducts<T>& p) {
  return kVectorBytes == 64 && p.low_row == 1 && p.low_column == 1 && p.x.columns == p.y.columns &&
         p.y.columns > kLanes<T> && p.x.row <= p.y.row && p.x.row_end >= p.y.row_end;
}

#if defined(__AVX512F__)

/// What is asked for ahead of what is read: as much as memory brings in the meantime.
template <typename T>
constexpr int64_t kProductsAhead = 8 * 1024 / static_cast<int64_t>(sizeof(T));

/// Lane i of the result is lane i - 1 of a vector, or i + 1; behind its end follows its neighbour.
template <typename T>
inline Vector<T> lanesBefore(Vector<T> before, Vector<T> v) {
  return pickLanes<T>(before, v, lanesFrom<T>(kLanes<T> - 1));
}
template <typename T>
inline Vector<T> lanesBehind(Vector<T> v, Vector<T> behind) {
  return pickLanes<T>(v, behind, lanesFrom<T>(1));
}

/// Columns of x that have one of y before them, and behind them.
template <typename T>
struct RowEnds {
  LaneMask<T> before, behind;
};

/// A vector of each of kRows rows of y, as each column of the filter meets x.
template <int kRows, typename T>
struct ShiftedRows {
  Vector<T> columns[kRows][3];
};

/// The sums of each tap, those of even and of odd rows apart, lest one waits for the other.
template <typename T>
struct RowSums {
  Vector<T> of[2][3][3];

  /// Adds a vector of the row of x that lies beside row kRow - 1 of y.
  template <int kRow, bool kLast, int kRows>
  inline __attribute__((always_inline)) void add(const ShiftedRows<kRows, T>& y, Vector<T> x,
                                                 RowEnds<T> ends) {
#pragma unroll
    for (int w = 0; w < kRows; ++w) {
      const int i = kRow - w;
      if (i < 0 || i > 2) continue;
      Vector<T>(&sums)[3] = of[w % 2][i];
      sums[0] = kLast ? multiplyAddLanes<T>(y.columns[w][0], x, sums[0], ends.behind)
                      : multiplyAdd<T>(y.columns[w][0], x, sums[0]);
      sums[1] = multiplyAdd<T>(y.columns[w][1], x, sums[1]);
      sums[2] = multiplyAddLanes<T>(y.columns[w][2], x, sums[2], ends.before);
    }
  }
};

/// Along kRows rows of y and those of x from the one above on, of which the first or the last one is missing
/// at the picture's edge. The last vector of a row has the lanes of `within`.
template <int kRows, bool kTop, bool kBottom, typename T>
struct RowBlock {
  const T *x, *y;
  int64_t columns;
  LaneMask<T> within;
  RowSums<T>& sums;
  Vector<T> before[kRows] = {}, here[kRows] = {};
  RowEnds<T> ends = {static_cast<LaneMask<T>>(-2), static_cast<LaneMask<T>>(within >> 1)};

  template <bool kLast>
  Vector<T> loadRow(const T* row, int64_t column) const {
    return kLast ? loadLanes<T>(row + column, within) : load(row + column);
  }

  /// Goes to the vector of y behind.
  template <bool kNextIsLast>
  inline __attribute__((always_inline)) ShiftedRows<kRows, T> next(int64_t column) {
    ShiftedRows<kRows, T> shifted;
#pragma unroll
    for (int w = 0; w < kRows; ++w) {
      const Vector<T> behind = loadRow<kNextIsLast>(y + w * columns, column + kLanes<T>);
      shifted.columns[w][0] = lanesBehind<T>(here[w], behind);
      shifted.columns[w][1] = here[w];
      shifted.columns[w][2] = lanesBefore<T>(before[w], here[w]);
      before[w] = here[w], here[w] = behind;
    }
    return shifted;
  }

  inline __attribute__((always_inline)) ShiftedRows<kRows, T> end() const {
    ShiftedRows<kRows, T> shifted;
#pragma unroll
    for (int w = 0; w < kRows; ++w) {
      shifted.columns[w][0] = lanesBehind<T>(here[w], Vector<T>{});
      shifted.columns[w][1] = here[w];
      shifted.columns[w][2] = lanesBefore<T>(before[w], here[w]);
    }
    return shifted;
  }

  template <bool kLast>
  inline __attribute__((always_inline)) void add(const ShiftedRows<kRows, T>& shifted, int64_t column) {
    askForLines<kRows>(x + kProductsAhead<T> + kRows * column);
    askForLines<kRows>(y + kProductsAhead<T> + kRows * column);
    auto addRow = [&]<int kRow>() __attribute__((always_inline)) {
      sums.template add<kRow, kLast>(shifted, loadRow<kLast>(x + kRow * columns, column), ends);
    };
    if constexpr (!kTop) addRow.template operator()<0>();
    addRow.template operator()<1>();
    if constexpr (kRows == 2) addRow.template operator()<2>();
    if constexpr (!kBottom) addRow.template operator()<kRows + 1>();
    ends.before = static_cast<LaneMask<T>>(-1);
  }

  /// kTwo: a row is two vectors.
  template <bool kTwo>
  inline __attribute__((always_inline)) void multiply() {
#pragma unroll
    for (int w = 0; w < kRows; ++w) here[w] = load(y + w * columns);
    const int64_t last = kTwo ? kLanes<T> : (columns - 1) / kLanes<T> * kLanes<T>;
    if constexpr (!kTwo) {
#pragma clang loop unroll(disable)
      for (int64_t column = 0; column + kLanes<T> < last; column += kLanes<T>)
        add<false>(next<false>(column), column);
    }
    add<false>(next<true>(last - kLanes<T>), last - kLanes<T>);
    ends.before = within;
    add<true>(end(), last);
  }
};

/// Planes whose rows are two vectors, or more.
template <bool kTwo, typename T>
void rowProducts(const PlaneProducts<T>& p) {
  const int64_t columns = p.y.columns;
  const LaneMask<T> within = lanesWithin<T>(0, columns - (columns - 1) / kLanes<T> * kLanes<T>);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    T* lanes = p.lanes + plane * p.lanes_plane;
    RowSums<T> sums = {};
    loadSums<3>(lanes, sums.of[0]);
    const T* x = p.x.data + plane * p.x.plane - columns;
    const T* y = p.y.data + plane * p.y.plane;
    auto multiply = [&]<int kRows>(int64_t row) __attribute__((always_inline)) {
      auto run = [&]<bool kTop, bool kBottom>() __attribute__((always_inline)) {
        RowBlock<kRows, kTop, kBottom, T>{x + row * columns, y + row * columns, columns, within, sums}
            .template multiply<kTwo>();
      };
      const bool top = row == p.x.row, bottom = row + kRows == p.x.row_end;
      if (top && bottom) return run.template operator()<true, true>();
      if (top) return run.template operator()<true, false>();
      bottom ? run.template operator()<false, true>() : run.template operator()<false, false>();
    };
    int64_t row = p.y.row;
    for (; row + 2 <= p.y.row_end; row += 2) multiply.template operator()<2>(row);
    if (row < p.y.row_end) multiply.template operator()<1>(row);
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) sums.of[0][tap / 3][tap % 3] += sums.of[1][tap / 3][tap % 3];
    storeSums<3>(sums.of[0], lanes);
  }
}

#endif

/// Computes them, if they are such.
template <typename T>
inline bool multipliesRows(const PlaneProducts<T>& p) {
  if (!hasPaddedRows(p)) return false;
#if defined(__AVX512F__)
  p.y.columns <= 2 * kLanes<T> ? rowProducts<true>(p) : rowProducts<false>(p);
#endif
  return true;
}

}  // namespace
}  // namespace gpuc
