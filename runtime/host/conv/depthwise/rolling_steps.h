// A 3x3 filter's sums over the windows of a plane by strides of two: down a column of vectors, row by row,
// all in registers. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/rolling_sums.h"

namespace gpuc {
namespace {

/// What the three columns of the filter meet of a row.
template <typename T>
struct SteppedRow {
  Vector<T> columns[3];
};

/// Of elements [0, 2 · lanes) and those two behind them.
template <typename T>
inline SteppedRow<T> steppedRow(Vector<T> low, Vector<T> high, Vector<T> low_behind, Vector<T> high_behind) {
  return {everyOther<T>(low, high, LaneIndices<T>()), everyOdd<T>(low, high, LaneIndices<T>()),
          everyOther<T>(low_behind, high_behind, LaneIndices<T>())};
}

template <typename T>
struct WholeSteps {
  static constexpr bool kAsks = true;  // for what comes next

  SteppedRow<T> row(const T* from) const {
    return steppedRow<T>(load(from), load(from + kLanes<T>), load(from + 2), load(from + kLanes<T> + 2));
  }
  void store(T* to, Vector<T> sums) const { gpuc::store(to, sums); }
};

template <typename T>
struct SomeSteps {
  static constexpr bool kAsks = true;
  LaneMask<T> low, high, low_behind, high_behind, kept;

  SteppedRow<T> row(const T* from) const {
    return steppedRow<T>(loadLanes<T>(from, low), loadLanes<T>(from + kLanes<T>, high),
                         loadLanes<T>(from + 2, low_behind), loadLanes<T>(from + kLanes<T> + 2, high_behind));
  }
  Vector<T> left(const T* y) const { return loadLanes<T>(y, kept); }
  void store(T* to, Vector<T> sums) const { storeLanes<T>(to, sums, kept); }
};

template <typename T>
SomeSteps<T> stepsInside(const PlaneSums<T>& p, int64_t column) {
  const int64_t first = 2 * column - p.low_column;
  auto inside = [&](int64_t at) { return lanesWithin<T>(-at, p.source.columns - at); };
  return {inside(first), inside(first + kLanes<T>), inside(first + 2), inside(first + kLanes<T> + 2),
          lanesWithin<T>(0, p.columns - column)};
}

template <typename T>
inline __attribute__((always_inline)) void addRow(const SteppedRow<T>& row, const Vector<T>* taps,
                                                  Vector<T>& sums) {
#pragma unroll
  for (int j = 0; j < 3; ++j) sums = multiplyAdd<T>(taps[j], row.columns[j], sums);
}

/// `rows` rows of the result; row r meets rows 2 r to 2 r + 2.
template <typename Steps, typename T>
inline __attribute__((always_inline)) void sumSteps(const RollingStrip<T>& s, int64_t rows,
                                                    const Steps& steps, const Vector<T>* taps) {
  Vector<T> sums = {};
  const T *from = s.from, *read_next = s.read_next;
  T* to = s.to;
  const T* write_next = s.write_next;
  auto isThere = [&](int64_t row) { return row >= s.begin && row < s.end; };
  if (isThere(0)) addRow<T>(steps.row(from), taps, sums);
#pragma clang loop unroll(disable)
  for (int64_t row = 0; row < rows; ++row, from += 2 * s.columns, to += s.to_columns) {
    Vector<T> next = {};
    if (isThere(2 * row + 1)) addRow<T>(steps.row(from + s.columns), taps + 3, sums);
    if (isThere(2 * row + 2)) {
      const SteppedRow<T> last = steps.row(from + 2 * s.columns);
      addRow<T>(last, taps + 6, sums);
      addRow<T>(last, taps, next);
    }
    steps.store(to, sums);
    sums = next;
    if constexpr (!Steps::kAsks) continue;
    askForLines<4>(read_next), read_next += 4 * kLanes<T>;
    askForLinesToWrite<1>(write_next), write_next += kLanes<T>;
  }
}

template <typename T>
void rollingSteps(const PlaneSums<T>& p) {
  SomeSteps<T> edges[kMostRollingVectors];
  const int64_t lanes = kLanes<T>, rows = p.row_end - p.row;
  auto isWhole = [&](int64_t column) {
    const int64_t first = 2 * column - p.low_column;
    return first >= 0 && first + 2 * lanes + 2 <= p.source.columns && column + lanes <= p.columns;
  };
  for (int64_t column = 0; column < p.columns; column += lanes)
    if (!isWhole(column)) edges[column / lanes] = stepsInside(p, column);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    Vector<T> taps[9];
    splatTaps<3>(p, plane, taps);
    RollingStrip<T> strip = rollingStrip<3, 2>(p, plane);
    for (int64_t column = 0; column < p.columns; column += lanes, strip.from += 2 * lanes, strip.to += lanes,
                 strip.read_next += 4 * rows * lanes, strip.write_next += rows * lanes) {
      if (isWhole(column))
        sumSteps(strip, rows, WholeSteps<T>(), taps);
      else
        sumSteps(strip, rows, edges[column / lanes], taps);
    }
  }
}

//===----------------------------------------------------------------------===//
// Backwards
//===----------------------------------------------------------------------===//

/// Windows of a row that begin at the even columns, those before, and those that begin before the odd ones.
template <typename T>
struct WindowRow {
  Vector<T> window, before, of_odd;
};

/// A vector of windows from one on, and what they leave in two vectors of the result's columns.
template <typename T>
struct StepsBack {
  static constexpr bool kAsks = true;
  LaneMask<T> window, window_before, kept[2];

  StepsBack() = default;
  StepsBack(const PlaneSums<T>& p, int64_t first)
      : window(lanesWithin<T>(-first, p.source.columns - first)),
        window_before(lanesWithin<T>(1 - first, p.source.columns - first + 1)) {
    for (int v = 0; v < 2; ++v) {
      const int64_t column = 2 * first - p.low_column + v * kLanes<T>;
      kept[v] = lanesWithin<T>(-column, p.columns - column);
    }
  }

  WindowRow<T> row(const T* at) const {
    const Vector<T> windows = loadLanes<T>(at, window);
    return {windows, loadLanes<T>(at - 1, window_before), windows};
  }
  void store(T* to, Vector<T> even, Vector<T> odd) const {
    storeLanes<T>(to, alternate<0, T>(even, odd, LaneIndices<T>()), kept[0]);
    storeLanes<T>(to + kLanes<T>, alternate<kLanes<T> / 2, T>(even, odd, LaneIndices<T>()), kept[1]);
  }
};

/// Even and odd columns of a row of the result.
template <typename T>
struct EvenOdd {
  Vector<T> even = {}, odd = {};

  /// Adds what a row of windows leaves there by a row of the filter.
  inline __attribute__((always_inline)) void add(const WindowRow<T>& row, const Vector<T>* taps) {
    even = multiplyAdd<T>(taps[0], row.window, even);
    even = multiplyAdd<T>(taps[2], row.before, even);
    odd = multiplyAdd<T>(taps[1], row.of_odd, odd);
  }
};

/// Rows of windows [begin, end); a row w of them leaves rows 2 w to 2 w + 2 of the result, which `to` would
/// be row 0 of, and of which [row, row_end) are stored. The row of windows before leaves one, too.
template <typename Steps, typename T>
inline __attribute__((always_inline)) void sumBack(const PlaneSums<T>& p, const Steps& steps,
                                                   const Vector<T>* taps, int64_t begin, int64_t end,
                                                   const T* from, T* to, const T* read_next,
                                                   const T* write_next) {
  const int64_t columns = p.source.columns, row = p.row + p.low_row, row_end = p.row_end + p.low_row;
  EvenOdd<T> sums;
  const T* at = from + (begin - 1) * columns;
#pragma clang loop unroll(disable)
  for (int64_t w = begin - 1; w < end; ++w, at += columns) {
    EvenOdd<T> middle, next;
    if (w >= p.source.row && w < p.source.row_end) {
      const WindowRow<T> windows = steps.row(at);
      sums.add(windows, taps);
      middle.add(windows, taps + 3);
      next.add(windows, taps + 6);
    }
    if (2 * w >= row && 2 * w < row_end) steps.store(to + 2 * w * p.columns, sums.even, sums.odd);
    if (2 * w + 1 >= row && 2 * w + 1 < row_end)
      steps.store(to + (2 * w + 1) * p.columns, middle.even, middle.odd);
    sums = next;
    if constexpr (!Steps::kAsks) continue;
    askForLines<1>(read_next), read_next += kLanes<T>;
    askForLinesToWrite<4>(write_next), write_next += 4 * kLanes<T>;
  }
}

template <typename T>
void rollingStepsBack(const PlaneSums<T>& p) {
  const int64_t first = p.low_column / 2, lanes = kLanes<T>;
  const int64_t begin = (p.row + p.low_row) / 2, end = (p.row_end - 1 + p.low_row) / 2 + 1;
  const int64_t windows_end = (p.low_column + p.columns - 1) / 2 + 1;
  StepsBack<T> steps[kMostRollingVectors];
  for (int64_t v = 0; first + v * lanes < windows_end; ++v) steps[v] = StepsBack<T>(p, first + v * lanes);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    Vector<T> taps[9];
    splatTaps<3>(p, plane, taps);
    const T* from = p.source.data + plane * p.source.plane;
    T* to = p.result + plane * p.result_plane - p.low_row * p.columns - p.low_column;
    for (int64_t v = 0; first + v * lanes < windows_end; ++v)
      sumBack(p, steps[v], taps, begin, end, from + first + v * lanes, to + 2 * (first + v * lanes),
              from + end * p.source.columns + v * (end + 1 - begin) * lanes,
              to + 2 * end * p.columns + 4 * v * (end + 1 - begin) * lanes);
  }
}

/// Whether a row's windows are one vector or two.
template <typename T>
inline bool rollsBack(const PlaneSums<T>& p) {
  const int64_t windows = (p.low_column + p.columns - 1) / 2 + 1 - p.low_column / 2;
  return windows <= kMostRollingVectors * kLanes<T>;
}

}  // namespace
}  // namespace gpuc
