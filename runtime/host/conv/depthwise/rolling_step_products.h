// A 3x3 filter's gradient, of one plane each, by strides of two: down a column of vectors, row by row, all in
// registers. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/rolling_products.h"
#include "runtime/host/conv/depthwise/rolling_steps.h"

namespace gpuc {
namespace {

/// Of x lanes beside y's columns, where it may be anything, are not read: 0 · x would bring it in.
template <typename T>
struct StepProductLanes {
  SomeSteps<T> of_x;  // kept: y's columns

  StepProductLanes() = default;
  StepProductLanes(const PlaneProducts<T>& p, int64_t column) {
    const int64_t first = 2 * column - p.low_column, met = 2 * (p.y.columns - column);
    auto inside = [&](int64_t shift, int64_t lane) {
      const int64_t at = first + shift + lane, room = p.x.columns - at;
      return lanesWithin<T>(-at, room < met - lane ? room : met - lane);
    };
    of_x = {inside(0, 0), inside(0, kLanes<T>), inside(2, 0), inside(2, kLanes<T>),
            lanesWithin<T>(0, p.y.columns - column)};
  }
};

/// Adds a row of x times one of y.
template <typename T>
inline __attribute__((always_inline)) void multiplyRow(const SteppedRow<T>& x, Vector<T> y,
                                                       Vector<T> (&sums)[3]) {
#pragma unroll
  for (int j = 0; j < 3; ++j) sums[j] = multiplyAdd<T>(y, x.columns[j], sums[j]);
}

template <typename T>
inline __attribute__((always_inline)) void multiplySteps(const ProductStrip<T>& s,
                                                         const StepProductLanes<T>& lanes,
                                                         Vector<T> (&sums)[3][3]) {
  const T *x = s.x, *y = s.y, *x_next = s.x_next, *y_next = s.y_next;
  const LaneMask<T> columns = lanes.of_x.kept;
  auto isThere = [&](int64_t row) { return row >= s.begin && row < s.end; };
  Vector<T> left = loadLanes<T>(y, columns);
  if (isThere(0)) multiplyRow<T>(lanes.of_x.row(x), left, sums[0]);
#pragma clang loop unroll(disable)
  for (int64_t row = 0; row + 1 < s.rows; ++row) {
    x += 2 * s.x_columns, y += s.y_columns;
    const Vector<T> next = loadLanes<T>(y, columns);
    if (isThere(2 * row + 1)) multiplyRow<T>(lanes.of_x.row(x - s.x_columns), left, sums[1]);
    if (isThere(2 * row + 2)) {
      const SteppedRow<T> right = lanes.of_x.row(x);
      multiplyRow<T>(right, left, sums[2]);
      multiplyRow<T>(right, next, sums[0]);
    }
    left = next;
    askForLines<4>(x_next), x_next += 4 * kLanes<T>;
    askForLines<1>(y_next), y_next += kLanes<T>;
  }
  if (isThere(2 * s.rows - 1)) multiplyRow<T>(lanes.of_x.row(x + s.x_columns), left, sums[1]);
  if (isThere(2 * s.rows)) multiplyRow<T>(lanes.of_x.row(x + 2 * s.x_columns), left, sums[2]);
}

/// Of rows of y of one vector or two.
template <typename T>
void rollingStepProducts(const PlaneProducts<T>& p) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  const int64_t width = kLanes<T>, rows = p.y.row_end - p.y.row, top = 2 * p.y.row - p.low_row;
  StepProductLanes<T> steps[kMostRollingVectors];
  for (int64_t column = 0; column < p.y.columns; column += width)
    steps[column / width] = StepProductLanes<T>(p, column);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    T* lanes = p.lanes + plane * p.lanes_plane;
    Vector<T> sums[3][3];
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) sums[tap / 3][tap % 3] = load(lanes + tap * kRoom);
    ProductStrip<T> strip = {.x = p.x.data + plane * p.x.plane + top * p.x.columns - p.low_column,
                             .y = p.y.data + plane * p.y.plane + p.y.row * p.y.columns,
                             .x_columns = p.x.columns,
                             .y_columns = p.y.columns,
                             .rows = rows,
                             .begin = p.x.row - top,
                             .end = p.x.row_end - top,
                             .x_next = nullptr,
                             .y_next = nullptr};
    strip.x_next = strip.x + (2 * rows + 1) * p.x.columns;
    strip.y_next = strip.y + rows * p.y.columns;
    for (int64_t column = 0; column < p.y.columns; column += width, strip.x += 2 * width, strip.y += width,
                 strip.x_next += 4 * rows * width, strip.y_next += rows * width)
      multiplySteps(strip, steps[column / width], sums);
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) store(lanes + tap * kRoom, sums[tap / 3][tap % 3]);
  }
}

}  // namespace
}  // namespace gpuc
