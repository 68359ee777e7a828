// A filter's gradient, of one plane each; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/flat_planes.h"
#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/matmul/dot.h"

namespace gpuc {
namespace {

/// Columns of the filter whose sums are in registers at once, and the rows of y beside them.
template <int kKernel>
constexpr int kProductColumns = kVectorBytes == 64 || kKernel == 3 ? 3
                                : kKernel == 5                     ? 2
                                                                   : 1;
constexpr int kProductRows = kVectorBytes == 64 ? 7 : 4;

/// Vectors of sums of kColumns columns of the filter.
template <int kKernel, int kStride, int kColumns, typename T>
struct ProductSums {
  const PlaneProducts<T>& p;
  int64_t column, first;  // of y, and of x by the first tap
  LaneMask<T> within;
  StepMask<kStride, T> inside[kColumns];
  Vector<T> sums[kKernel][kColumns];

  ProductSums(const PlaneProducts<T>& products, int64_t y_column, int tap)
      : p(products), column(y_column), first(y_column * kStride - products.low_column + tap) {
    const int64_t lanes = p.y.columns - column < kLanes<T> ? p.y.columns - column : kLanes<T>;
    within = lanesWithin<T>(0, lanes);
    for (int j = 0; j < kColumns; ++j) {
      // Beside y's columns x may be anything, which 0 · x would bring in.
      const int64_t room = p.x.columns - first - j, read = (lanes - 1) * kStride + 1;
      inside[j] = StepMask<kStride, T>(-first - j, room < read ? room : read);
    }
  }

  /// Adds the products of kRows rows of y.
  template <int kRows>
  inline __attribute__((always_inline)) void addRows(const T* x, const T* y, int64_t row) {
    Vector<T> rows[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) rows[r] = loadLanes<T>(y + (row + r) * p.y.columns + column, within);
    const int64_t top = row * kStride - p.low_row;
    const T* from = x + top * p.x.columns + first;
#pragma unroll
    for (int r = 0; r < (kRows - 1) * kStride + kKernel; ++r) {
      if (top + r < p.x.row || top + r >= p.x.row_end) continue;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const Vector<T> right = loadSteps<kStride, T>(from + r * p.x.columns + j, inside[j]);
#pragma unroll
        for (int i = 0; i < kKernel; ++i) {
          if ((r - i) % kStride != 0 || r < i || (r - i) / kStride >= kRows) continue;
          sums[i][j] = multiplyAdd<T>(rows[(r - i) / kStride], right, sums[i][j]);
        }
      }
    }
  }
};

/// kColumns columns of the filter, from `tap` on, for one vector of columns of y.
template <int kKernel, int kStride, int kColumns, typename T>
__attribute__((noinline)) void productColumns(const PlaneProducts<T>& p, int64_t column, int tap) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  ProductSums<kKernel, kStride, kColumns, T> products(p, column, tap);
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    const T *x = p.x.data + plane * p.x.plane, *y = p.y.data + plane * p.y.plane;
    T* lanes = p.lanes + plane * p.lanes_plane + tap * kRoom;
    auto place = [&](int i, int j)
                     __attribute__((always_inline)) { return lanes + (i * kKernel + j) * kRoom; };
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
      for (int j = 0; j < kColumns; ++j) products.sums[i][j] = load(place(i, j));
    int64_t row = p.y.row;
    for (; row + kProductRows <= p.y.row_end; row += kProductRows)
      products.template addRows<kProductRows>(x, y, row);
    for (; row + 2 <= p.y.row_end; row += 2) products.template addRows<2>(x, y, row);
    if (row < p.y.row_end) products.template addRows<1>(x, y, row);
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
      for (int j = 0; j < kColumns; ++j) store(place(i, j), products.sums[i][j]);
  }
}

template <int kKernel, int kStride, typename T>
void planeProducts(const PlaneProducts<T>& p) {
  if constexpr (kStride == 1)
    if (multipliesFlat<kKernel>(p)) return;
  constexpr int kColumns = kProductColumns<kKernel>, kRest = kKernel % kColumns;
  for (int64_t column = 0; column < p.y.columns; column += kLanes<T>) {
    for (int tap = 0; tap + kColumns <= kKernel; tap += kColumns)
      productColumns<kKernel, kStride, kColumns>(p, column, tap);
    if constexpr (kRest > 0) productColumns<kKernel, kStride, kRest>(p, column, kKernel - kRest);
  }
}

template <typename T>
void addLanes(const T* lanes, int64_t count, T* sums) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  for (int64_t i = 0; i < count; ++i) sums[i] = sum<T>(load(lanes + i * kRoom));
}

}  // namespace
}  // namespace gpuc
