// A filter's gradient, of one plane each; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/channel_lanes.h"
#include "runtime/host/conv/depthwise/flat_planes.h"
#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/large_row_products.h"
#include "runtime/host/conv/depthwise/large_step_products.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/conv/depthwise/rolling_products.h"
#include "runtime/host/conv/depthwise/rolling_step_products.h"
#include "runtime/host/conv/depthwise/row_pairs.h"
#include "runtime/host/conv/depthwise/row_products.h"
#include "runtime/host/conv/depthwise/sized_planes.h"
#include "runtime/host/conv/depthwise/vector_blocks.h"
#include "runtime/host/conv/depthwise/vector_plane_steps.h"
#include "runtime/host/conv/depthwise/vector_planes.h"
#include "runtime/host/matmul/dot.h"

namespace gpuc {
namespace {

/// Columns of the filter whose sums are in registers at once, and the rows of y beside them.
template <int kKernel>
constexpr int kProductColumns = kVectorBytes == 64 || kKernel == 3 ? 3
                                : kKernel == 5                     ? 2
                                                                   : 1;
constexpr int kProductRows = kVectorBytes == 64 ? 7 : 4;

/// Which lanes of a vector of columns of y are read, and of x by each of kColumns taps from `tap` on.
template <int kStride, int kColumns, typename T>
struct ProductMasks {
  int64_t column;
  LaneMask<T> within;
  StepMask<kStride, T> inside[kColumns];

  ProductMasks(const PlaneProducts<T>& p, int64_t y_column, int tap) : column(y_column) {
    const int64_t first = column * kStride - p.low_column + tap;
    const int64_t lanes = p.y.columns - column < kLanes<T> ? p.y.columns - column : kLanes<T>;
    within = lanesWithin<T>(0, lanes);
    for (int j = 0; j < kColumns; ++j) {
      // Beside y's columns x may be anything, which 0 · x would bring in.
      const int64_t room = p.x.columns - first - j, read = (lanes - 1) * kStride + 1;
      inside[j] = StepMask<kStride, T>(-first - j, room < read ? room : read);
    }
  }
};

/// Whether those are all lanes.
template <int kStride, int kColumns, typename T>
inline bool readsAllLanes(const PlaneProducts<T>& p, int64_t column, int tap) {
  const int64_t first = column * kStride - p.low_column + tap;
  return column + kLanes<T> <= p.y.columns && first >= 0 &&
         first + kLanes<T> * kStride + kColumns - 1 <= p.x.columns;
}

/// Where a block of rows of y, one vector wide, and of what it meets of x begins. Of the rows that it meets,
/// from the first on, there are [begin, end). Its share of what the blocks below read, as that lies in
/// memory, is asked for.
template <typename T>
struct ProductBlock {
  const T *x, *y;
  int64_t x_columns, y_columns, begin, end;
  const T *x_below, *y_below;
};

/// Vectors of sums of kColumns columns of the filter.
template <int kKernel, int kStride, int kColumns, typename T>
struct ProductSums {
  Vector<T> sums[kKernel][kColumns];

  /// Adds the products of kRows rows of y. kWhole: all lanes and rows are read. kAhead: lines of what
  /// comes next are asked for.
  template <int kRows, bool kWhole, bool kAhead>
  inline __attribute__((always_inline)) void add(const ProductBlock<T>& b,
                                                 const ProductMasks<kStride, kColumns, T>& given) {
    constexpr int kMet = (kRows - 1) * kStride + kKernel;
    ProductMasks<kStride, kColumns, T> masks = given;
    if constexpr (!kWhole)
      for (auto& inside : masks.inside)
        for (auto& part : inside.parts) keepInRegister<T>(part);
    Vector<T> rows[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const T* at = b.y + r * b.y_columns;
      rows[r] = kWhole ? load(at) : loadLanes<T>(at, masks.within);
      if (kAhead) askForLines<1>(b.y_below + r * kLanes<T>);
    }
#pragma unroll
    for (int r = 0; r < kMet; ++r) {
      if (!kWhole && (r < b.begin || r >= b.end)) continue;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const T* at = b.x + r * b.x_columns + j;
        const Vector<T> right =
            kWhole ? loadSteps<kStride, T>(at) : loadSteps<kStride, T>(at, masks.inside[j]);
#pragma unroll
        for (int i = 0; i < kKernel; ++i) {
          if ((r - i) % kStride != 0 || r < i || (r - i) / kStride >= kRows) continue;
          sums[i][j] = multiplyAdd<T>(rows[(r - i) / kStride], right, sums[i][j]);
        }
      }
      if (kAhead && r < kRows * kStride) askForLines<kStride>(b.x_below + r * kStride * kLanes<T>);
    }
  }
};

/// kColumns columns of the filter, from `tap` on: by rows of y, as they lie in memory. kOneVector: of y's
/// columns, whose masks then stay in registers.
template <int kKernel, int kStride, int kColumns, bool kOneVector, typename T>
__attribute__((noinline)) void productColumns(const PlaneProducts<T>& p, int tap) {
  constexpr int64_t kRoom = kPlaneLaneBytes / sizeof(T);
  using Masks = ProductMasks<kStride, kColumns, T>;
  const Masks left(p, 0, tap);
  Masks other = left;  // that was met last
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    const T *x = p.x.data + plane * p.x.plane - p.low_column + tap, *y = p.y.data + plane * p.y.plane;
    T* lanes = p.lanes + plane * p.lanes_plane + tap * kRoom;
    auto place = [&](int i, int j)
                     __attribute__((always_inline)) { return lanes + (i * kKernel + j) * kRoom; };
    ProductSums<kKernel, kStride, kColumns, T> products;
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
      for (int j = 0; j < kColumns; ++j) products.sums[i][j] = load(place(i, j));
    auto addRows = [&]<int kRows>(int64_t row) __attribute__((always_inline)) {
      const int64_t top = row * kStride - p.low_row;
      ProductBlock<T> block = {.x = x + top * p.x.columns,
                               .y = y + row * p.y.columns,
                               .x_columns = p.x.columns,
                               .y_columns = p.y.columns,
                               .begin = p.x.row - top,
                               .end = p.x.row_end - top,
                               .x_below = x + (top + (kRows - 1) * kStride + kKernel) * p.x.columns,
                               .y_below = y + (row + kRows) * p.y.columns};
      if constexpr (kOneVector) {
        products.template add<kRows, false, false>(block, left);
        return;
      }
      const bool has_rows = block.begin <= 0 && block.end >= (kRows - 1) * kStride + kKernel;
      for (int64_t column = 0; column < p.y.columns; column += kLanes<T>, block.x += kLanes<T> * kStride,
                   block.y += kLanes<T>, block.x_below += kRows * kStride * kStride * kLanes<T>,
                   block.y_below += kRows * kLanes<T>) {
        if (has_rows && readsAllLanes<kStride, kColumns>(p, column, tap)) {
          products.template add<kRows, true, true>(block, left);
          continue;
        }
        if (column > 0 && other.column != column) other = Masks(p, column, tap);
        products.template add<kRows, false, true>(block, column == 0 ? left : other);
      }
    };
    int64_t row = p.y.row;
    for (; row + kProductRows <= p.y.row_end; row += kProductRows)
      addRows.template operator()<kProductRows>(row);
    for (; row + 2 <= p.y.row_end; row += 2) addRows.template operator()<2>(row);
    if (row < p.y.row_end) addRows.template operator()<1>(row);
#pragma unroll
    for (int i = 0; i < kKernel; ++i)
      for (int j = 0; j < kColumns; ++j) store(place(i, j), products.sums[i][j]);
  }
}

/// Of one image.
template <int kKernel, int kStride, typename T>
void productsOfImage(const PlaneProducts<T>& p) {
  if constexpr (kStride == 1 && kRolls<kKernel>)
    if (multipliesRows(p)) return;
  if constexpr (kStride == 1)
    if (multipliesLargeRows<kKernel>(p)) return;
  if constexpr (kStride == 1 && kRolls<kKernel>)
    if (p.y.row_end - p.y.row >= kKernel && p.y.columns <= kMostRollingVectors * kLanes<T>)
      return rollingProducts<kKernel>(p);
  if constexpr (kStride == 2)
    if (multipliesPairs<kKernel>(p)) return;
  if constexpr (kStride == 2 && kRolls<kKernel>)
    if (p.y.columns <= kMostRollingVectors * kLanes<T>) return rollingStepProducts(p);
  constexpr int kColumns = kProductColumns<kKernel>, kRest = kKernel % kColumns;
  auto multiply = [&]<bool kOneVector>() {
    for (int tap = 0; tap + kColumns <= kKernel; tap += kColumns)
      productColumns<kKernel, kStride, kColumns, kOneVector>(p, tap);
    if constexpr (kRest > 0) productColumns<kKernel, kStride, kRest, kOneVector>(p, kKernel - kRest);
  };
  p.y.columns <= kLanes<T> ? multiply.template operator()<true>() : multiply.template operator()<false>();
}

template <int kKernel, int kStride, typename T>
__attribute__((noinline)) void productsOfAnySize(const PlaneProducts<T>& p) {
  if constexpr (kStride == 1)
    if (multipliesPlanesOfVector<kKernel>(p) || multipliesBlocks<kKernel, 1>(p) || multipliesFlat<kKernel>(p))
      return;
  if constexpr (kStride == 2 && kRolls<kKernel>)
    if (multipliesPicked(p)) return;
  if constexpr (kStride == 2 && !kRolls<kKernel>)
    if (multipliesLargeSteps<kKernel>(p) || multipliesBlocks<kKernel, 2>(p)) return;
  if (p.images == 1) return productsOfImage<kKernel, kStride>(p);
  for (int64_t image = 0; image < p.images; ++image) productsOfImage<kKernel, kStride>(p.ofImage(image));
}

/// Planes by kernels of which several share a vector.
template <int kKernel, int kStride, typename T>
SharedPlanes sharedPlanes(const PlaneProducts<T>& p) {
  const SharedPlanes shared = sharedPlanesSized<kKernel, kStride>(p);
  return shared.planes > 0 ? shared : sharedPlanesInLanes<kKernel, kStride>(p);
}

template <int kKernel, int kStride, typename T>
void planeProducts(const PlaneProducts<T>& p) {
  int64_t done = multipliesSized<kKernel, kStride>(p);
  if (done == 0) done = multipliesInLanes<kKernel, kStride>(p);
  if (done < p.planes) productsOfAnySize<kKernel, kStride>(p.from(done));
}

//===----------------------------------------------------------------------===//
// Sums of lanes
//===----------------------------------------------------------------------===//

/// v[0] = the sums of so many vectors, twice kDistance, in the order in which sum() adds.
template <int kDistance, typename T>
inline __attribute__((always_inline)) void addTree(Vector<T>* v) {
#pragma unroll
  for (int i = 0; i < kDistance; ++i) v[i] = addHalves<kDistance, T>(v[i], v[i + kDistance]);
  if constexpr (kDistance > 1) addTree<kDistance / 2, T>(v);
}

/// Each lane of v = the sum of all lanes of its part of twice kDistance.
template <int kDistance, typename T>
inline __attribute__((always_inline)) void addAlone(Vector<T>& v) {
  v = addHalves<kDistance, T>(v, v);
  if constexpr (kDistance > 1) addAlone<kDistance / 2, T>(v);
}

template <typename T>
void addLanes(const T* lanes, int64_t count, T* sums) {
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) {
    Vector<T> v[kLanes<T>];
#pragma unroll
    for (int j = 0; j < kLanes<T>; ++j) v[j] = load(lanes + (i + j) * kSumRoom<T>);
    addTree<kLanes<T> / 2, T>(v);
    store(sums + i, v[0]);
  }
  for (; i < count; ++i) sums[i] = sum<T>(load(lanes + i * kSumRoom<T>));
}

#if defined(__AVX512F__)

/// Sums of each plane's lanes of kCount vectors, up to as many as a plane has lanes.
template <int kPlanes, int kCount, typename T>
inline __attribute__((always_inline)) void addLanesOfParts(const T* lanes, T* sums, int64_t sums_plane) {
  constexpr int kSpan = kLanes<T> / kPlanes;
  Vector<T> v[kSpan];
#pragma unroll
  for (int i = 0; i < kCount; ++i) v[i] = load(lanes + i * kSumRoom<T>);
  if constexpr (kCount == kSpan)
    addTree<kSpan / 2, T>(v);
  else
    addAlone<kSpan / 2, T>(v[0]);
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane)
    storeLanes<T>(sums + plane * (sums_plane - kSpan), v[0],
                  lanesWithin<T>(plane * kSpan, plane * kSpan + kCount));
}

/// Of all taps, of which one is left over.
template <int kTaps, int kPlanes, typename T>
inline __attribute__((always_inline)) void addTapsOfParts(const T* lanes, T* sums, int64_t sums_plane) {
  constexpr int kSpan = kLanes<T> / kPlanes;
  static_assert(kTaps % kSpan == 1);
#pragma unroll
  for (int tap = 0; tap + kSpan <= kTaps; tap += kSpan)
    addLanesOfParts<kPlanes, kSpan>(lanes + tap * kSumRoom<T>, sums + tap, sums_plane);
  addLanesOfParts<kPlanes, 1>(lanes + (kTaps - 1) * kSumRoom<T>, sums + kTaps - 1, sums_plane);
}

#endif

template <int kTaps, typename T>
void addSharedLanes(int64_t in_vector, const T* lanes, T* sums, int64_t sums_plane) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4 && kTaps == 9) {
    if (in_vector == 2) addTapsOfParts<kTaps, 2>(lanes, sums, sums_plane);
    if (in_vector == 4) addTapsOfParts<kTaps, 4>(lanes, sums, sums_plane);
  }
  if constexpr (sizeof(T) == 4 && kTaps > kChannelLanes)
    if (in_vector == kChannelLanes)
      fromLanes(reinterpret_cast<const Vector<T>*>(lanes), kTaps, sums, sums_plane);
#endif
}

template <int kKernel, int kStride, typename T>
void addUpProducts(const PlaneProducts<T>& p, T* sums, int64_t sums_plane) {
  constexpr int kTaps = kKernel * kKernel;
  SharedPlanes shared = sharedPlanes<kKernel, kStride>(p);
  if (shared.in_vector == 1) shared.planes = 0;
  for (int64_t plane = 0; plane < shared.planes; plane += shared.in_vector)
    addSharedLanes<kTaps>(shared.in_vector, p.lanes + plane * p.lanes_plane, sums + plane * sums_plane,
                          sums_plane);
  const T* lanes = p.lanes + shared.planes * p.lanes_plane;
  sums += shared.planes * sums_plane;
  const int64_t rest = p.planes - shared.planes;
  if (sums_plane == kTaps) return addLanes(lanes, rest * kTaps, sums);
  for (int64_t plane = 0; plane < rest; ++plane)
    addLanes(lanes + plane * p.lanes_plane, kTaps, sums + plane * sums_plane);
}

}  // namespace
}  // namespace gpuc
