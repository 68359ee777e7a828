// A small filter's gradient, of one plane each, by strides of one: down a column of vectors, row by row of x.
// All sums stay in registers, and so do as many rows of y as the filter has. Included by patch_kernels.cpp
// alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/conv/depthwise/rolling_sums.h"

namespace gpuc {
namespace {

/// Rows of y, one vector wide, and where those of x lie that they meet, of which [begin, end) are there.
template <typename T>
struct ProductStrip {
  const T *x, *y;
  int64_t x_columns, y_columns, rows, begin, end;
  const T *x_next, *y_next;  // asked for line by line
};

/// Which lanes of y are read, and of x, by tap: none beside y's columns, where x may be anything, which
/// 0 · x would bring in.
template <int kKernel, typename T>
struct RollingProductMasks {
  LaneMask<T> inside[kKernel], within;
};

template <int kKernel, bool kWhole, typename T>
struct RollingProducts {
  Vector<T> (&sums)[kKernel][kKernel];
  const RollingProductMasks<kKernel, T>& masks;
  Vector<T> rows[kKernel] = {};  // of y, the last one that was loaded in front

  /// Loads a row of y; the one that was loaded kKernel rows before is met no more.
  template <int... kRow>
  inline __attribute__((always_inline)) void next(const T* y, std::integer_sequence<int, kRow...>) {
    ((rows[kKernel - 1 - kRow] = rows[kKernel - 2 - kRow]), ...);
    rows[0] = kWhole ? load(y) : loadLanes<T>(y, masks.within);
  }
  inline __attribute__((always_inline)) void next(const T* y) {
    next(y, std::make_integer_sequence<int, kKernel - 1>());
  }

  /// Adds a row of x times those of y that rows [kFirst, kEnd) of the filter bring to it.
  template <int kFirst, int kEnd>
  inline __attribute__((always_inline)) void add(const T* x) {
    constexpr int kBehind = kEnd == kKernel ? kFirst : 0;  // rows of x behind the last one of y
#pragma unroll
    for (int j = 0; j < kKernel; ++j) {
      const Vector<T> right = kWhole ? load(x + j) : loadLanes<T>(x + j, masks.inside[j]);
#pragma unroll
      for (int i = kFirst; i < kEnd; ++i) sums[i][j] = multiplyAdd<T>(rows[i - kBehind], right, sums[i][j]);
    }
  }

  /// The first rows of x meet the first ones of y alone, and the last the last.
  template <int... kRow>
  inline __attribute__((always_inline)) void begin(const ProductStrip<T>& s,
                                                   std::integer_sequence<int, kRow...>) {
    (
        [&]() __attribute__((always_inline)) {
          next(s.y + kRow * s.y_columns);
          if (kRow >= s.begin && kRow < s.end) add<0, kRow + 1>(s.x + kRow * s.x_columns);
        }(),
        ...);
  }
  template <int... kRow>
  inline __attribute__((always_inline)) void end(const ProductStrip<T>& s,
                                                 std::integer_sequence<int, kRow...>) {
    (
        [&]() __attribute__((always_inline)) {
          const int64_t row = s.rows + kRow;
          if (row >= s.begin && row < s.end) add<kRow + 1, kKernel>(s.x + row * s.x_columns);
        }(),
        ...);
  }
};

template <int kKernel, bool kWhole, typename T>
inline __attribute__((always_inline)) void multiplyStrip(const ProductStrip<T>& s,
                                                         const RollingProductMasks<kKernel, T>& masks,
                                                         Vector<T> (&sums)[kKernel][kKernel]) {
  constexpr auto kEdge = std::make_integer_sequence<int, kKernel - 1>();
  RollingProducts<kKernel, kWhole, T> products{sums, masks};
  products.begin(s, kEdge);
  const T *x = s.x + (kKernel - 1) * s.x_columns, *y = s.y + (kKernel - 1) * s.y_columns;
  const T *x_next = s.x_next, *y_next = s.y_next;
#pragma clang loop unroll(disable)
  for (int64_t row = kKernel - 1; row < s.rows; ++row, x += s.x_columns, y += s.y_columns) {
    products.next(y);
    if (row >= s.begin && row < s.end) products.template add<0, kKernel>(x);
    askForLines<1>(x_next), x_next += kLanes<T>;
    askForLines<1>(y_next), y_next += kLanes<T>;
  }
  products.end(s, kEdge);
}

template <int kKernel, typename T>
RollingProductMasks<kKernel, T> rollingProductMasks(const PlaneProducts<T>& p, int64_t column) {
  const int64_t lanes = p.y.columns - column;
  RollingProductMasks<kKernel, T> masks;
  masks.within = lanesWithin<T>(0, lanes);
  for (int j = 0; j < kKernel; ++j) {
    const int64_t at = column - p.low_column + j, room = p.x.columns - at;
    masks.inside[j] = lanesWithin<T>(-at, room < lanes ? room : lanes);
  }
  return masks;
}

/// Wider rows are so many streams that the processor does not foresee: those have blocks of rows.
constexpr int64_t kMostRollingVectors = 2;

/// Of kKernel rows of y and more.
template <int kKernel, typename T>
void rollingProducts(const PlaneProducts<T>& p) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  RollingProductMasks<kKernel, T> masks[kMostRollingVectors];
  const int64_t width = kLanes<T>, rows = p.y.row_end - p.y.row, top = p.y.row - p.low_row;
  auto isWhole = [&](int64_t column) {
    const int64_t first = column - p.low_column;
    return first >= 0 && first + width + kKernel - 1 <= p.x.columns && column + width <= p.y.columns;
  };
  for (int64_t column = 0; column < p.y.columns; column += width)
    if (!isWhole(column)) masks[column / width] = rollingProductMasks<kKernel>(p, column);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    T* lanes = p.lanes + plane * p.lanes_plane;
    Vector<T> sums[kKernel][kKernel];
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
#pragma unroll
      for (int j = 0; j < kKernel; ++j) sums[i][j] = load(lanes + (i * kKernel + j) * kRoom);
    ProductStrip<T> strip = {.x = p.x.data + plane * p.x.plane + top * p.x.columns - p.low_column,
                             .y = p.y.data + plane * p.y.plane + p.y.row * p.y.columns,
                             .x_columns = p.x.columns,
                             .y_columns = p.y.columns,
                             .rows = rows,
                             .begin = p.x.row - top,
                             .end = p.x.row_end - top};
    strip.x_next = strip.x + (rows + kKernel - 1) * p.x.columns;
    strip.y_next = strip.y + rows * p.y.columns;
    for (int64_t column = 0; column < p.y.columns; column += width, strip.x += width, strip.y += width,
                 strip.x_next += rows * width, strip.y_next += rows * width) {
      if (isWhole(column))
        multiplyStrip<kKernel, true>(strip, masks[0], sums);
      else
        multiplyStrip<kKernel, false>(strip, masks[column / width], sums);
    }
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
#pragma unroll
      for (int j = 0; j < kKernel; ++j) store(lanes + (i * kKernel + j) * kRoom, sums[i][j]);
  }
}

}  // namespace
}  // namespace gpuc
