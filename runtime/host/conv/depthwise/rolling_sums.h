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

/// Which lanes are read, by tap, and written.
template <int kKernel, typename T>
struct RollingMasks {
  LaneMask<T> inside[kKernel], kept;
};

/// Sums of kKernel rows, the one that is complete first in front.
template <int kKernel, bool kWhole, typename T>
struct RollingRows {
  const RollingMasks<kKernel, T>& masks;
  const Vector<T>* taps;
  Vector<T> sums[kKernel] = {};

  /// Adds what a row adds to the sums from kFirst on.
  template <int kFirst>
  inline __attribute__((always_inline)) void add(const T* row) {
#pragma unroll
    for (int j = 0; j < kKernel; ++j) {
      const Vector<T> x = kWhole ? load(row + j) : loadLanes<T>(row + j, masks.inside[j]);
#pragma unroll
      for (int i = kFirst; i < kKernel; ++i)
        sums[i] = multiplyAdd<T>(taps[(kKernel - 1 - i) * kKernel + j], x, sums[i]);
    }
  }

  inline __attribute__((always_inline)) void storeFirst(T* to) const {
    kWhole ? store(to, sums[0]) : storeLanes<T>(to, sums[0], masks.kept);
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

template <int kKernel, bool kWhole, typename T>
inline __attribute__((always_inline)) void sumStrip(const RollingStrip<T>& s,
                                                    const RollingMasks<kKernel, T>& masks,
                                                    const Vector<T>* taps) {
  RollingRows<kKernel, kWhole, T> rows{masks, taps};
  rows.begin(s, std::make_integer_sequence<int, kKernel - 1>());
  const T *from = s.from + (kKernel - 1) * s.columns, *read_next = s.read_next;
  T* to = s.to;
  const T* write_next = s.write_next;
  int64_t row = kKernel - 1;
#pragma clang loop unroll(disable)
  for (; row < s.begin && row < s.met; ++row, from += s.columns, to += s.to_columns) {
    rows.storeFirst(to);
    rows.shift();
  }
  const int64_t end = s.end < s.met ? s.end : s.met;
#pragma clang loop unroll(disable)
  for (; row < end; ++row, from += s.columns, to += s.to_columns) {
    rows.template add<0>(from);
    rows.storeFirst(to);
    rows.shift();
    askForLines<1>(read_next), read_next += kLanes<T>;
    askForLinesToWrite<1>(write_next), write_next += kLanes<T>;
  }
#pragma clang loop unroll(disable)
  for (; row < s.met; ++row, to += s.to_columns) {
    rows.storeFirst(to);
    rows.shift();
  }
}

template <int kKernel, typename T>
RollingMasks<kKernel, T> rollingMasks(const PlaneSums<T>& p, int64_t column) {
  RollingMasks<kKernel, T> masks;
  masks.kept = lanesWithin<T>(0, p.columns - column);
  for (int j = 0; j < kKernel; ++j) {
    const int64_t at = column - p.low_column + j;
    masks.inside[j] = lanesWithin<T>(-at, p.source.columns - at);
  }
  return masks;
}

template <int kKernel, typename T>
void rollingSums(const PlaneSums<T>& p) {
  constexpr int64_t kMostVectors = kMostDepthwiseColumns / kLanes<T>;
  RollingMasks<kKernel, T> masks[kMostVectors];
  const int64_t lanes = kLanes<T>;
  auto isWhole = [&](int64_t column) {
    const int64_t first = column - p.low_column;
    return first >= 0 && first + lanes + kKernel - 1 <= p.source.columns && column + lanes <= p.columns;
  };
  const int64_t rows = p.row_end - p.row, top = p.row - p.low_row;
  for (int64_t column = 0; column < p.columns; column += lanes)
    if (!isWhole(column)) masks[column / lanes] = rollingMasks<kKernel>(p, column);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    const T* filter = p.filter + plane * p.filter_plane;
    Vector<T> taps[kKernel * kKernel];
    for (int tap = 0; tap < kKernel * kKernel; ++tap)
      taps[tap] = splat<T>(filter[p.flipped ? kKernel * kKernel - 1 - tap : tap]);
    RollingStrip<T> strip = {
        .from = p.source.data + plane * p.source.plane + top * p.source.columns - p.low_column,
        .columns = p.source.columns,
        .met = rows + kKernel - 1,
        .begin = p.source.row - top,
        .end = p.source.row_end - top,
        .to = p.result + plane * p.result_plane + p.row * p.columns,
        .to_columns = p.columns};
    strip.read_next = strip.from + strip.met * p.source.columns;
    strip.write_next = strip.to + rows * p.columns;
    for (int64_t column = 0; column < p.columns; column += lanes, strip.from += lanes, strip.to += lanes,
                 strip.read_next += rows * lanes, strip.write_next += rows * lanes) {
      if (isWhole(column))
        sumStrip<kKernel, true>(strip, masks[0], taps);
      else
        sumStrip<kKernel, false>(strip, masks[column / lanes], taps);
    }
  }
}

}  // namespace
}  // namespace gpuc
