// The transforms of Winograd's F(2x2, 3x3), a channel in each lane; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h). Sides of a tile are transformed one after the other: first its columns, then
// its rows.
#pragma once

#include "runtime/host/conv/winograd/winograd.h"
#include "runtime/host/matmul/load.h"

namespace gpuc {
namespace {

template <typename T>
using Four = Vector<T>[4];

/// Calls visit(row, column, lane) for each tile and vector of its channels.
template <typename T, typename Visit>
inline void forEachTile(const WinogradTiles<T>& p, Visit visit) {
  for (int64_t lane = 0; lane < p.lanes; lane += kLanes<T>)
    for (int64_t row = 0; row < p.rows; ++row)
      for (int64_t column = 0; column < p.columns; ++column) visit(row, column, lane);
}

//===----------------------------------------------------------------------===//
// The source
//===----------------------------------------------------------------------===//

/// A column of four pixels, transformed: B^T of it.
template <typename T>
inline void sourceColumn(const T* pixels, int64_t row, Four<T>& column) {
  const Vector<T> a = load(pixels), b = load(pixels + row), c = load(pixels + 2 * row),
                  d = load(pixels + 3 * row);
  column[0] = a - c, column[1] = b + c, column[2] = c - b, column[3] = b - d;
}

/// The columns that two tiles share are transformed once.
template <typename T>
void winogradSource(const WinogradTiles<T>& p) {
  for (int64_t lane = 0; lane < p.lanes; lane += kLanes<T>)
    for (int64_t row = 0; row < p.rows; ++row) {
      const T* from = p.pixels + 2 * row * p.pixel_row + lane;
      T* to = p.planes + row * p.columns * p.lanes + lane;
      Four<T> a, b, c, d;
      sourceColumn(from, p.pixel_row, a);
      sourceColumn(from + p.lanes, p.pixel_row, b);
      for (int64_t column = 0; column < p.columns; ++column, to += p.lanes) {
        from += 2 * p.lanes;
        sourceColumn(from, p.pixel_row, c);
        sourceColumn(from + p.lanes, p.pixel_row, d);
        for (int i = 0; i < 4; ++i) {
          store(to + 4 * i * p.plane, a[i] - c[i]);
          store(to + (4 * i + 1) * p.plane, b[i] + c[i]);
          store(to + (4 * i + 2) * p.plane, c[i] - b[i]);
          store(to + (4 * i + 3) * p.plane, b[i] - d[i]);
          a[i] = c[i], b[i] = d[i];
        }
      }
    }
}

//===----------------------------------------------------------------------===//
// The result, and its cotangent
//===----------------------------------------------------------------------===//

template <typename T>
void winogradResult(const WinogradTiles<T>& p) {
  forEachTile(p, [&](int64_t row, int64_t column, int64_t lane) __attribute__((always_inline)) {
    const T* from = p.planes + (row * p.columns + column) * p.lanes + lane;
    T* to = p.pixels + 2 * row * p.pixel_row + 2 * column * p.lanes + lane;
    Vector<T> left[4], right[4];
    for (int i = 0; i < 4; ++i) {
      const T* planes = from + 4 * i * p.plane;
      const Vector<T> b = load(planes + p.plane), c = load(planes + 2 * p.plane);
      left[i] = load(planes) + (b + c);
      right[i] = (b - c) - load(planes + 3 * p.plane);
    }
    const bool is_wide = 2 * column + 1 < p.pixel_columns;
    store(to, left[0] + (left[1] + left[2]));
    if (is_wide) store(to + p.lanes, right[0] + (right[1] + right[2]));
    if (2 * row + 1 >= p.pixel_rows) return;
    to += p.pixel_row;
    store(to, (left[1] - left[2]) - left[3]);
    if (is_wide) store(to + p.lanes, (right[1] - right[2]) - right[3]);
  });
}

template <typename T>
void winogradCotangent(const WinogradTiles<T>& p) {
  forEachTile(p, [&](int64_t row, int64_t column, int64_t lane) __attribute__((always_inline)) {
    const T* from = p.pixels + 2 * row * p.pixel_row + 2 * column * p.lanes + lane;
    T* to = p.planes + (row * p.columns + column) * p.lanes + lane;
    const Vector<T> zero = {};
    const bool is_wide = 2 * column + 1 < p.pixel_columns, is_high = 2 * row + 1 < p.pixel_rows;
    const Vector<T> a = load(from), b = is_wide ? load(from + p.lanes) : zero;
    const Vector<T> c = is_high ? load(from + p.pixel_row) : zero;
    const Vector<T> d = is_high && is_wide ? load(from + p.pixel_row + p.lanes) : zero;
    const Vector<T> left[4] = {a, a + c, a - c, -c}, right[4] = {b, b + d, b - d, -d};
    for (int i = 0; i < 4; ++i) {
      T* planes = to + 4 * i * p.plane;
      store(planes, left[i]);
      store(planes + p.plane, left[i] + right[i]);
      store(planes + 2 * p.plane, left[i] - right[i]);
      store(planes + 3 * p.plane, -right[i]);
    }
  });
}

//===----------------------------------------------------------------------===//
// The filter, and its gradient
//===----------------------------------------------------------------------===//

/// G of three: halves of sums and differences are exact but for denormals.
template <typename T>
inline void filterSide(Vector<T> a, Vector<T> b, Vector<T> c, Four<T>& side) {
  const Vector<T> half = splat<T>(T(0.5)), sum = a + c;
  side[0] = a, side[1] = half * (sum + b), side[2] = half * (sum - b), side[3] = c;
}

/// G^T of four.
template <typename T>
inline void gradientSide(const Four<T>& side, Vector<T> (&taps)[3]) {
  const Vector<T> half = splat<T>(T(0.5)), sum = half * (side[1] + side[2]);
  taps[0] = side[0] + sum, taps[1] = half * (side[1] - side[2]), taps[2] = sum + side[3];
}

template <typename T>
void winogradFilter(const WinogradFilters<T>& p) {
  for (int64_t i = 0; i < p.count; ++i)
    for (int64_t lane = 0; lane < p.lanes; lane += kLanes<T>) {
      const T* from = p.taps + i * p.filter_step + lane;
      T* to = p.planes + i * p.lanes + lane;
      Four<T> columns[3];
      for (int j = 0; j < 3; ++j)
        filterSide<T>(load(from + j * p.tap_step), load(from + (3 + j) * p.tap_step),
                      load(from + (6 + j) * p.tap_step), columns[j]);
      for (int r = 0; r < 4; ++r) {
        Four<T> row;
        filterSide<T>(columns[0][r], columns[1][r], columns[2][r], row);
        for (int j = 0; j < 4; ++j) store(to + (4 * r + j) * p.plane, row[j]);
      }
    }
}

template <typename T>
void winogradGradient(const WinogradFilters<T>& p) {
  for (int64_t i = 0; i < p.count; ++i)
    for (int64_t lane = 0; lane < p.lanes; lane += kLanes<T>) {
      const T* from = p.planes + i * p.lanes + lane;
      T* to = p.taps + i * p.filter_step + lane;
      Four<T> columns[3];
      for (int r = 0; r < 4; ++r) {
        Four<T> row;
        for (int j = 0; j < 4; ++j) row[j] = load(from + (4 * r + j) * p.plane);
        Vector<T> taps[3];
        gradientSide<T>(row, taps);
        for (int j = 0; j < 3; ++j) columns[j][r] = taps[j];
      }
      for (int j = 0; j < 3; ++j) {
        Vector<T> taps[3];
        gradientSide<T>(columns[j], taps);
        for (int r = 0; r < 3; ++r) store(to + (3 * r + j) * p.tap_step, taps[r]);
      }
    }
}

template <typename T>
constexpr TypedWinogradKernels<T> winogradKernels() {
  return {winogradSource<T>, winogradResult<T>, winogradCotangent<T>, winogradFilter<T>, winogradGradient<T>};
}

}  // namespace
}  // namespace gpuc
