// A small filter's sums over the windows of a plane, by strides of one: down a column of vectors, row by row.
// All taps stay in registers, and so do the sums of as many rows as the filter has. Included by
// patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/workspace/conv_depthwise.h"

namespace gpuc {
namespace {

/// Whether the registers hold all of a filter's taps beside the sums.
template <int kKernel>
constexpr bool kRolls = kKernel == 3 && kVectorBytes == 64;

/// Wider rows of y are so many streams, of x and y or by strides, that the processor does not foresee: those
/// have blocks of rows.
constexpr int64_t kMostRollingVectors = 2;

/// Rows of the result, one vector wide, and where those lie that they meet: `met` in all, of which
/// [begin, end) are there.
template <typename T>
struct RollingStrip {
  const T* from;
  int64_t columns, met, begin, end;
  T* to;
  int64_t to_columns;
  const T *read_next, *write_next;  // asked for line by line
};

/// Rows of one plane, of which all lanes are read and written.
template <typename T>
struct WholeLanes {
  static constexpr bool kAsks = true;  // for what comes next

  const T* row(const T* from) const { return from; }
  Vector<T> column(const T* row, int j) const { return load(row + j); }
  void store(T* to, Vector<T> sums) const { gpuc::store(to, sums); }
};

/// Rows of one plane, of which some lanes are read, by tap, and written.
template <int kKernel, typename T>
struct SomeLanes {
  static constexpr bool kAsks = true;
  LaneMask<T> inside[kKernel], kept;

  const T* row(const T* from) const { return from; }
  Vector<T> column(const T* row, int j) const { return loadLanes<T>(row + j, inside[j]); }
  void store(T* to, Vector<T> sums) const { storeLanes<T>(to, sums, kept); }
};

/// Sums of kKernel rows, the one that is complete first in front.
template <int kKernel, typename Lanes, typename T>
struct RollingRows {
  const Lanes& lanes;
  const Vector<T>* taps;
  Vector<T> sums[kKernel] = {};

  /// Adds what a row adds to the sums from kFirst on.
  template <int kFirst>
  inline __attribute__((always_inline)) void add(const T* from) {
    const auto row = lanes.row(from);
#pragma unroll
    for (int j = 0; j < kKernel; ++j) {
      const Vector<T> x = lanes.column(row, j);
#pragma unroll
      for (int i = kFirst; i < kKernel; ++i)
        sums[i] = multiplyAdd<T>(taps[(kKernel - 1 - i) * kKernel + j], x, sums[i]);
    }
  }

  /// No loop: it would be taken for a copy of memory, which the sums would lie in then.
  template <int... kSum>
  inline __attribute__((always_inline)) void shift(std::integer_sequence<int, kSum...>) {
    ((sums[kSum] = sums[kSum + 1]), ...);
    sums[kKernel - 1] = Vector<T>{};
  }
  inline __attribute__((always_inline)) void shift() {
    shift(std::make_integer_sequence<int, kKernel - 1>());
  }

  /// The first rows that are met complete none: row r adds to the sums that begin with it or before.
  template <int... kRow>
  inline __attribute__((always_inline)) void begin(const RollingStrip<T>& s,
                                                   std::integer_sequence<int, kRow...>) {
    (
        [&]() __attribute__((always_inline)) {
          if (kRow >= s.begin && kRow < s.end) add<kKernel - 1 - kRow>(s.from + kRow * s.columns);
          shift();
        }(),
        ...);
  }
};

template <int kKernel, typename Lanes, typename T>
inline __attribute__((always_inline)) void sumStrip(const RollingStrip<T>& s, const Lanes& lanes,
                                                    const Vector<T>* taps) {
  RollingRows<kKernel, Lanes, T> rows{lanes, taps};
  rows.begin(s, std::make_integer_sequence<int, kKernel - 1>());
  const T *from = s.from + (kKernel - 1) * s.columns, *read_next = s.read_next;
  T* to = s.to;
  const T* write_next = s.write_next;
  int64_t row = kKernel - 1;
#pragma clang loop unroll(disable)
  for (; row < s.begin && row < s.met; ++row, from += s.columns, to += s.to_columns) {
    lanes.store(to, rows.sums[0]);
    rows.shift();
  }
  const int64_t end = s.end < s.met ? s.end : s.met;
#pragma clang loop unroll(disable)
  for (; row < end; ++row, from += s.columns, to += s.to_columns) {
    rows.template add<0>(from);
    lanes.store(to, rows.sums[0]);
    rows.shift();
    if constexpr (!Lanes::kAsks) continue;
    askForLines<1>(read_next), read_next += kLanes<T>;
    askForLinesToWrite<1>(write_next), write_next += kLanes<T>;
  }
#pragma clang loop unroll(disable)
  for (; row < s.met; ++row, to += s.to_columns) {
    lanes.store(to, rows.sums[0]);
    rows.shift();
  }
}

template <int kKernel, typename T>
SomeLanes<kKernel, T> lanesInside(const PlaneSums<T>& p, int64_t column) {
  SomeLanes<kKernel, T> masks;
  masks.kept = lanesWithin<T>(0, p.columns - column);
  for (int j = 0; j < kKernel; ++j) {
    const int64_t at = column - p.low_column + j;
    masks.inside[j] = lanesWithin<T>(-at, p.source.columns - at);
  }
  return masks;
}

/// Of the first column on.
template <int kKernel, int kStride, typename T>
RollingStrip<T> rollingStrip(const PlaneSums<T>& p, int64_t plane) {
  const int64_t top = p.row * kStride - p.low_row, rows = p.row_end - p.row;
  const int64_t met = (rows - 1) * kStride + kKernel;
  const T* from = p.source.data + plane * p.source.plane + top * p.source.columns - p.low_column;
  T* to = p.result + plane * p.result_plane + p.row * p.columns;
  return {.from = from,
          .columns = p.source.columns,
          .met = met,
          .begin = p.source.row - top,
          .end = p.source.row_end - top,
          .to = to,
          .to_columns = p.columns,
          .read_next = from + met * p.source.columns,
          .write_next = to + rows * p.columns};
}

/// A plane's filter, in the order in which its taps are met, a tap in each vector.
template <int kKernel, typename T>
inline __attribute__((always_inline)) void splatTaps(const PlaneSums<T>& p, int64_t plane, Vector<T>* taps) {
  constexpr int kTaps = kKernel * kKernel;
  const T* filter = p.filter + plane * p.filter_plane;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) taps[tap] = splat<T>(filter[p.flipped ? kTaps - 1 - tap : tap]);
}

template <int kKernel, typename T>
void rollingSums(const PlaneSums<T>& p) {
  constexpr int64_t kMostVectors = kMostDepthwiseColumns / kLanes<T>;
  SomeLanes<kKernel, T> edges[kMostVectors];
  const int64_t lanes = kLanes<T>;
  auto isWhole = [&](int64_t column) {
    const int64_t first = column - p.low_column;
    return first >= 0 && first + lanes + kKernel - 1 <= p.source.columns && column + lanes <= p.columns;
  };
  const int64_t rows = p.row_end - p.row;
  for (int64_t column = 0; column < p.columns; column += lanes)
    if (!isWhole(column)) edges[column / lanes] = lanesInside<kKernel>(p, column);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    Vector<T> taps[kKernel * kKernel];
    splatTaps<kKernel>(p, plane, taps);
    RollingStrip<T> strip = rollingStrip<kKernel, 1>(p, plane);
    for (int64_t column = 0; column < p.columns; column += lanes, strip.from += lanes, strip.to += lanes,
                 strip.read_next += rows * lanes, strip.write_next += rows * lanes) {
      if (isWhole(column))
        sumStrip<kKernel>(strip, WholeLanes<T>(), taps);
      else
        sumStrip<kKernel>(strip, edges[column / lanes], taps);
    }
  }
}

}  // namespace
}  // namespace gpuc
