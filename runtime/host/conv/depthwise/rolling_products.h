// A small filter's gradient, of one plane each, by strides of one: down a column of vectors, row by row of x.
// All sums stay in registers, and so do as many rows of y as the filter has. Included by patch_kernels.cpp
// alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/conv/depthwise/rolling_sums.h"

namespace gpuc {
namespace {

/// Elements from one tap's sums to the next.
template <typename T>
constexpr int64_t kSumRoom = kPlaneLaneBytes / static_cast<int64_t>(sizeof(T));

/// Rows of y, one vector wide, and where those of x lie that they meet, of which [begin, end) are there.
template <typename T>
struct ProductStrip {
  const T *x, *y;
  int64_t x_columns, y_columns, rows, begin, end;
  const T *x_next, *y_next;  // asked for line by line

  /// Of another image, so far behind.
  ProductStrip behind(int64_t x_elements, int64_t y_elements) const {
    ProductStrip strip = *this;
    strip.x += x_elements, strip.x_next += x_elements;
    strip.y += y_elements, strip.y_next += y_elements;
    return strip;
  }
};

/// Rows of one plane each, of which all lanes are read.
template <typename T>
struct WholeProductLanes {
  static constexpr bool kAsks = true;  // for what comes next

  Vector<T> left(const T* y) const { return load(y); }
  const T* row(const T* x) const { return x; }
  Vector<T> column(const T* row, int j) const { return load(row + j); }
};

/// Rows of one plane each, of which some lanes are read: of x none beside y's columns, where it may be
/// anything, which 0 · x would bring in.
template <int kKernel, typename T>
struct SomeProductLanes {
  static constexpr bool kAsks = true;
  LaneMask<T> inside[kKernel], within;

  Vector<T> left(const T* y) const { return loadLanes<T>(y, within); }
  const T* row(const T* x) const { return x; }
  Vector<T> column(const T* row, int j) const { return loadLanes<T>(row + j, inside[j]); }
};

template <int kKernel, typename Lanes, typename T>
struct RollingProducts {
  Vector<T> (&sums)[kKernel][kKernel];
  const Lanes& lanes;
  Vector<T> rows[kKernel] = {};  // of y, the last one that was loaded in front

  /// Loads a row of y; the one that was loaded kKernel rows before is met no more.
  template <int... kRow>
  inline __attribute__((always_inline)) void next(const T* y, std::integer_sequence<int, kRow...>) {
    ((rows[kKernel - 1 - kRow] = rows[kKernel - 2 - kRow]), ...);
    rows[0] = lanes.left(y);
  }
  inline __attribute__((always_inline)) void next(const T* y) {
    next(y, std::make_integer_sequence<int, kKernel - 1>());
  }

  /// Adds a row of x times those of y that rows [kFirst, kEnd) of the filter bring to it.
  template <int kFirst, int kEnd>
  inline __attribute__((always_inline)) void add(const T* x) {
    const auto row = lanes.row(x);
    constexpr int kBehind = kEnd == kKernel ? kFirst : 0;  // rows of x behind the last one of y
#pragma unroll
    for (int j = 0; j < kKernel; ++j) {
      const Vector<T> right = lanes.column(row, j);
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

template <int kKernel, typename Lanes, typename T>
inline __attribute__((always_inline)) void multiplyStrip(const ProductStrip<T>& s, const Lanes& lanes,
                                                         Vector<T> (&sums)[kKernel][kKernel]) {
  constexpr auto kEdge = std::make_integer_sequence<int, kKernel - 1>();
  RollingProducts<kKernel, Lanes, T> products{sums, lanes};
  products.begin(s, kEdge);
  const T *x = s.x + (kKernel - 1) * s.x_columns, *y = s.y + (kKernel - 1) * s.y_columns;
  const T *x_next = s.x_next, *y_next = s.y_next;
#pragma clang loop unroll(disable)
  for (int64_t row = kKernel - 1; row < s.rows; ++row, x += s.x_columns, y += s.y_columns) {
    products.next(y);
    if (row >= s.begin && row < s.end) products.template add<0, kKernel>(x);
    if constexpr (!Lanes::kAsks) continue;
    askForLines<1>(x_next), x_next += kLanes<T>;
    askForLines<1>(y_next), y_next += kLanes<T>;
  }
  products.end(s, kEdge);
}

template <int kKernel, typename T>
SomeProductLanes<kKernel, T> productLanes(const PlaneProducts<T>& p, int64_t column) {
  const int64_t lanes = p.y.columns - column;
  SomeProductLanes<kKernel, T> masks;
  masks.within = lanesWithin<T>(0, lanes);
  for (int j = 0; j < kKernel; ++j) {
    const int64_t at = column - p.low_column + j, room = p.x.columns - at;
    masks.inside[j] = lanesWithin<T>(-at, room < lanes ? room : lanes);
  }
  return masks;
}

/// Of the first column on.
template <int kKernel, int kStride, typename T>
ProductStrip<T> productStrip(const PlaneProducts<T>& p, int64_t plane) {
  const int64_t top = p.y.row * kStride - p.low_row, rows = p.y.row_end - p.y.row;
  const T* x = p.x.data + plane * p.x.plane + top * p.x.columns - p.low_column;
  const T* y = p.y.data + plane * p.y.plane + p.y.row * p.y.columns;
  return {.x = x,
          .y = y,
          .x_columns = p.x.columns,
          .y_columns = p.y.columns,
          .rows = rows,
          .begin = p.x.row - top,
          .end = p.x.row_end - top,
          .x_next = x + ((rows - 1) * kStride + kKernel) * p.x.columns,
          .y_next = y + rows * p.y.columns};
}

/// A plane's vectors of sums, and back.
template <int kKernel, typename T>
inline __attribute__((always_inline)) void loadSums(const T* lanes, Vector<T> (&sums)[kKernel][kKernel]) {
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap)
    sums[tap / kKernel][tap % kKernel] = load(lanes + tap * kSumRoom<T>);
}
template <int kKernel, typename T>
inline __attribute__((always_inline)) void storeSums(const Vector<T> (&sums)[kKernel][kKernel], T* lanes) {
#pragma unroll
  for (int tap = 0; tap < kKernel * kKernel; ++tap)
    store(lanes + tap * kSumRoom<T>, sums[tap / kKernel][tap % kKernel]);
}

/// Of kKernel rows of y and more.
template <int kKernel, typename T>
void rollingProducts(const PlaneProducts<T>& p) {
  SomeProductLanes<kKernel, T> edges[kMostRollingVectors];
  const int64_t width = kLanes<T>, rows = p.y.row_end - p.y.row;
  auto isWhole = [&](int64_t column) {
    const int64_t first = column - p.low_column;
    return first >= 0 && first + width + kKernel - 1 <= p.x.columns && column + width <= p.y.columns;
  };
  for (int64_t column = 0; column < p.y.columns; column += width)
    if (!isWhole(column)) edges[column / width] = productLanes<kKernel>(p, column);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    T* lanes = p.lanes + plane * p.lanes_plane;
    Vector<T> sums[kKernel][kKernel];
    loadSums<kKernel>(lanes, sums);
    ProductStrip<T> strip = productStrip<kKernel, 1>(p, plane);
    for (int64_t column = 0; column < p.y.columns; column += width, strip.x += width, strip.y += width,
                 strip.x_next += rows * width, strip.y_next += rows * width) {
      if (isWhole(column))
        multiplyStrip<kKernel>(strip, WholeProductLanes<T>(), sums);
      else
        multiplyStrip<kKernel>(strip, edges[column / width], sums);
    }
    storeSums<kKernel>(sums, lanes);
  }
}

}  // namespace
}  // namespace gpuc
