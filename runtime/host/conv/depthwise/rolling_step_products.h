// A 3x3 filter's gradient, of one plane each, by strides of two: down a column of vectors, row by row, all in
// registers. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/rolling_products.h"
#include "runtime/host/conv/depthwise/rolling_steps.h"

namespace gpuc {
namespace {

/// Of x lanes beside y's columns, where it may be anything, are not read: 0 · x would bring it in.
template <typename T>
SomeSteps<T> productSteps(const PlaneProducts<T>& p, int64_t column) {
  const int64_t first = 2 * column - p.low_column, met = 2 * (p.y.columns - column);
  auto inside = [&](int64_t shift, int64_t lane) {
    const int64_t at = first + shift + lane, room = p.x.columns - at;
    return lanesWithin<T>(-at, room < met - lane ? room : met - lane);
  };
  return {inside(0, 0), inside(0, kLanes<T>), inside(2, 0), inside(2, kLanes<T>),
          lanesWithin<T>(0, p.y.columns - column)};
}

/// Adds a row of x times one of y.
template <typename T>
inline __attribute__((always_inline)) void multiplyRow(const SteppedRow<T>& x, Vector<T> y,
                                                       Vector<T> (&sums)[3]) {
#pragma unroll
  for (int j = 0; j < 3; ++j) sums[j] = multiplyAdd<T>(y, x.columns[j], sums[j]);
}

template <typename Steps, typename T>
inline __attribute__((always_inline)) void multiplySteps(const ProductStrip<T>& s, const Steps& lanes,
                                                         Vector<T> (&sums)[3][3]) {
  const T *x = s.x, *y = s.y, *x_next = s.x_next, *y_next = s.y_next;
  auto isThere = [&](int64_t row) { return row >= s.begin && row < s.end; };
  Vector<T> left = lanes.left(y);
  if (isThere(0)) multiplyRow<T>(lanes.row(x), left, sums[0]);
#pragma clang loop unroll(disable)
  for (int64_t row = 0; row + 1 < s.rows; ++row) {
    x += 2 * s.x_columns, y += s.y_columns;
    const Vector<T> next = lanes.left(y);
    if (isThere(2 * row + 1)) multiplyRow<T>(lanes.row(x - s.x_columns), left, sums[1]);
    if (isThere(2 * row + 2)) {
      const SteppedRow<T> right = lanes.row(x);
      multiplyRow<T>(right, left, sums[2]);
      multiplyRow<T>(right, next, sums[0]);
    }
    left = next;
    if constexpr (!Steps::kAsks) continue;
    askForLines<4>(x_next), x_next += 4 * kLanes<T>;
    askForLines<1>(y_next), y_next += kLanes<T>;
  }
  if (isThere(2 * s.rows - 1)) multiplyRow<T>(lanes.row(x + s.x_columns), left, sums[1]);
  if (isThere(2 * s.rows)) multiplyRow<T>(lanes.row(x + 2 * s.x_columns), left, sums[2]);
}

/// Of rows of y of one vector or two.
template <typename T>
void rollingStepProducts(const PlaneProducts<T>& p) {
  const int64_t width = kLanes<T>, rows = p.y.row_end - p.y.row;
  SomeSteps<T> steps[kMostRollingVectors];
  for (int64_t column = 0; column < p.y.columns; column += width)
    steps[column / width] = productSteps<T>(p, column);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    T* lanes = p.lanes + plane * p.lanes_plane;
    Vector<T> sums[3][3];
    loadSums<3>(lanes, sums);
    ProductStrip<T> strip = productStrip<3, 2>(p, plane);
    for (int64_t column = 0; column < p.y.columns; column += width, strip.x += 2 * width, strip.y += width,
                 strip.x_next += 4 * rows * width, strip.y_next += rows * width)
      multiplySteps(strip, steps[column / width], sums);
    storeSums<3>(sums, lanes);
  }
}

}  // namespace
}  // namespace gpuc
