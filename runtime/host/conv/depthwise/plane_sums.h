// A filter's sums over the windows of a plane, and over those that have an element; included by
// patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/channel_lanes.h"
#include "runtime/host/conv/depthwise/flat_planes.h"
#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/depthwise/large_step_sums.h"
#include "runtime/host/conv/depthwise/large_steps_back.h"
#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/conv/depthwise/rolling_steps.h"
#include "runtime/host/conv/depthwise/rolling_sums.h"
#include "runtime/host/conv/depthwise/row_pairs.h"
#include "runtime/host/conv/depthwise/sized_planes.h"
#include "runtime/host/conv/depthwise/vector_blocks.h"
#include "runtime/host/conv/depthwise/vector_plane_steps.h"
#include "runtime/host/conv/depthwise/vector_planes.h"

namespace gpuc {
namespace {

/// Whether all of a filter's taps are kept in registers too; else those of one column at a time.
template <int kKernel>
constexpr bool kKeepsTaps = kKernel == 3 && kVectorBytes == 64;

/// Rows of a block, and its vectors of columns: as many sums as the registers hold beside operands.
template <int kStride>
constexpr int kSumRows = kVectorBytes < 64 ? 4
                         : kStride == 1    ? 7
                                           : 4;
template <int kKernel, int kStride>
constexpr int kSumVectors = kKernel > 3 && kStride == 1 ? 2 : 1;

/// Which lanes of the vectors from a column on are read, by tap, and written.
template <int kStride, int kTaps, int kVectors, typename T>
struct SumColumn {
  int64_t column;
  StepMask<kStride, T> inside[kVectors][kTaps];
  LaneMask<T> kept[kVectors];
};

/// Rows of a block and where they are read and written. Of the rows that it reads, from the first on, there
/// are [begin, end).
template <typename T>
struct SumBlock {
  const T* from;
  int64_t columns, begin, end;
  const T* taps;
  T* to;
  int64_t to_columns, to_begin, to_end;
};

/// A plane's filter, in the order in which its taps are met.
template <int kKernel, typename T>
inline void orderTaps(const PlaneSums<T>& p, int64_t plane, T* taps) {
  constexpr int kTaps = kKernel * kKernel;
  const T* filter = p.filter + plane * p.filter_plane;
  if (p.flipped)
    for (int tap = 0; tap < kTaps; ++tap) taps[tap] = filter[kTaps - 1 - tap];
  else
    for (int tap = 0; tap < kTaps; ++tap) taps[tap] = filter[tap];
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Columns that a block loads from the first one's first tap on; by strides also one behind the last.
template <int kKernel, int kStride, int kVectors, typename T>
constexpr int64_t kColumnsRead = kVectors * kLanes<T> * kStride + kKernel - 1;

template <int kKernel, int kStride, int kVectors, typename T>
SumColumn<kStride, kKernel, kVectors, T> sumColumn(const PlaneSums<T>& p, int64_t column) {
  SumColumn<kStride, kKernel, kVectors, T> c;
  c.column = column;
  for (int v = 0; v < kVectors; ++v) {
    const int64_t first = column + v * kLanes<T>;
    c.kept[v] = lanesWithin<T>(0, p.columns - first);
    for (int j = 0; j < kKernel; ++j) {
      const int64_t at = first * kStride - p.low_column + j;
      c.inside[v][j] = StepMask<kStride, T>(-at, p.source.columns - at);
    }
  }
  return c;
}

/// kWhole: all lanes and rows are read, and all lanes written.
template <int kKernel, int kStride, int kVectors, bool kWhole, int kMasks, typename T>
__attribute__((noinline)) void sumBlock(const SumColumn<kStride, kKernel, kMasks, T>& c,
                                        const SumBlock<T>& b) {
  constexpr int kRows = kSumRows<kStride>;
  Vector<T> sums[kRows][kVectors] = {};
  const T *from = b.from, *taps = b.taps;
  const int64_t columns = b.columns, begin = b.begin;
  const auto count = static_cast<uint64_t>(b.end - begin);
  StepMask<kStride, T> inside[kVectors][kKernel];
  for (int v = 0; v < kVectors; ++v)
    for (int j = 0; j < kKernel; ++j) inside[v][j] = c.inside[v][j];
  constexpr int kMet = (kRows - 1) * kStride + kKernel;
  auto add = [&](int r, int j, const Vector<T>* filter, int filter_row) __attribute__((always_inline)) {
    Vector<T> x[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const T* at = from + r * columns + v * kLanes<T> * kStride + j;
      x[v] = kWhole ? loadSteps<kStride, T>(at) : loadSteps<kStride, T>(at, inside[v][j]);
    }
#pragma unroll
    for (int i = 0; i < kKernel; ++i) {
      if ((r - i) % kStride != 0 || r < i || (r - i) / kStride >= kRows) continue;
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
        sums[(r - i) / kStride][v] = multiplyAdd<T>(filter[i * filter_row], x[v], sums[(r - i) / kStride][v]);
    }
  };
  if constexpr (kKeepsTaps<kKernel>) {
    Vector<T> kept[kKernel * kKernel];
    for (int tap = 0; tap < kKernel * kKernel; ++tap) kept[tap] = splat<T>(taps[tap]);
#pragma unroll
    for (int r = 0; r < kMet; ++r) {
      if (!kWhole && static_cast<uint64_t>(r - begin) >= count) continue;
#pragma unroll
      for (int j = 0; j < kKernel; ++j) add(r, j, kept + j, kKernel);
    }
  } else {
#pragma unroll
    for (int j = 0; j < kKernel; ++j) {
      Vector<T> kept[kKernel];
#pragma unroll
      for (int i = 0; i < kKernel; ++i) kept[i] = splat<T>(taps[i * kKernel + j]);
#pragma unroll
      for (int r = 0; r < kMet; ++r) {
        if (!kWhole && static_cast<uint64_t>(r - begin) >= count) continue;
        add(r, j, kept, 1);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= b.to_end) break;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      T* to = b.to + r * b.to_columns + v * kLanes<T>;
      kWhole ? store(to, sums[r][v]) : storeLanes<T>(to, sums[r][v], c.kept[v]);
    }
  }
}

template <int kKernel, int kStride, typename T>
__attribute__((noinline)) void sumsOfAnySize(const PlaneSums<T>& p) {
  if constexpr (kStride == 1)
    if (sumsPlanesOfVector<kKernel>(p) || sumsBlocks<kKernel, 1>(p) || sumsFlat<kKernel>(p)) return;
  if constexpr (kStride == 1 && kRolls<kKernel>) return rollingSums<kKernel>(p);
  if constexpr (kStride == 2 && kRolls<kKernel>)
    if (sumsPicked(p)) return;
  if constexpr (kStride == 2)
    if (sumsBlocks<kKernel, 2>(p) || sumsPairs<kKernel>(p)) return;
  if constexpr (kStride == 2 && kRolls<kKernel>)
    if (p.columns <= kMostRollingVectors * kLanes<T>) return rollingSteps(p);
  constexpr int kVectors = kSumVectors<kKernel, kStride>, kRows = kSumRows<kStride>;
  constexpr int64_t kColumns = kVectors * kLanes<T>;
  using Column = SumColumn<kStride, kKernel, kVectors, T>;
  const Column left = sumColumn<kKernel, kStride, kVectors>(p, 0);
  Column other = left;  // that was met last
  T taps[kKernel * kKernel];
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    orderTaps<kKernel>(p, plane, taps);
    for (int64_t row = p.row; row < p.row_end; row += kRows) {
      const int64_t top = row * kStride - p.low_row;
      SumBlock<T> block = {
          .from = p.source.data + plane * p.source.plane + top * p.source.columns - p.low_column,
          .columns = p.source.columns,
          .begin = p.source.row - top,
          .end = p.source.row_end - top,
          .taps = taps,
          .to = p.result + plane * p.result_plane + row * p.columns,
          .to_columns = p.columns,
          .to_begin = 0,
          .to_end = p.row_end - row};
      // What the blocks below read and write, as it lies in memory: each block here asks for its share.
      const T* from_below = block.from + ((kRows - 1) * kStride + kKernel) * p.source.columns;
      const T* to_below = block.to + kRows * p.columns;
      for (int64_t column = 0; column < p.columns;
           column += kColumns, block.from += kColumns * kStride, block.to += kColumns) {
        const int64_t first = column * kStride - p.low_column;
        askForLines<kRows * kStride * kStride * kVectors>(from_below + column * kRows * kStride * kStride);
        askForLinesToWrite<kRows * kVectors>(to_below + column * kRows);
        if (block.begin <= 0 && block.end >= (kRows - 1) * kStride + kKernel && first >= 0 &&
            first + kColumnsRead<kKernel, kStride, kVectors, T> <= p.source.columns &&
            column + kColumns <= p.columns) {
          sumBlock<kKernel, kStride, kVectors, true>(left, block);
          continue;
        }
        if (column > 0 && other.column != column) other = sumColumn<kKernel, kStride, kVectors>(p, column);
        const Column& edge = column == 0 ? left : other;
        if (kVectors > 1 && column + kLanes<T> >= p.columns)
          sumBlock<kKernel, kStride, 1, false>(edge, block);
        else
          sumBlock<kKernel, kStride, kVectors, false>(edge, block);
      }
    }
  }
}

template <int kKernel, int kStride, typename T>
void planeSums(const PlaneSums<T>& p) {
  int64_t done = sumsSized<kKernel, kStride>(p);
  if (done == 0) done = sumsInLanes<kKernel, kStride>(p);
  if (done == 0 && kStride == 2) done = sumsLargeSteps<kKernel>(p);
  if (done == p.planes) return;
  for (int64_t image = 0; image < p.images; ++image)
    sumsOfAnySize<kKernel, kStride>(p.from(done).ofImage(image));
}

//===----------------------------------------------------------------------===//
// Windows, by strides of two, that have an element
//===----------------------------------------------------------------------===//

/// Two vectors from a column on that lies, with the padding before it, an even number of columns from the
/// first window; so does the block's first row. Its element 2u + a, a being 0 or 1, is met by taps of a's
/// parity alone: by tap j of window u + (a - j) / 2.
template <int kKernel, typename T>
__attribute__((noinline)) void sumBlockBackwards(const SumColumn<1, (kKernel + 1) / 2, 2, T>& c,
                                                 const SumBlock<T>& b) {
  constexpr int kRows = kSumRows<2>, kSteps = (kKernel + 1) / 2;
  Vector<T> sums[kRows][2] = {};
  const T *from = b.from, *taps = b.taps;
  const int64_t columns = b.columns, begin = b.begin, end = b.end;
#pragma unroll
  for (int w = kRows / 2 - 1; w > -kSteps; --w) {
    if (w < begin || w >= end) continue;
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      const Vector<T> y = loadSteps<1, T>(from + w * columns - j, c.inside[0][j]);
#pragma unroll
      for (int i = 0; i < kKernel; ++i) {
        const int r = 2 * w + i;
        if (r < 0 || r >= kRows) continue;
        const T* tap = taps + i * kKernel + 2 * j;
        sums[r][0] = multiplyAdd<T>(splat<T>(tap[0]), y, sums[r][0]);
        if (2 * j + 1 < kKernel) sums[r][1] = multiplyAdd<T>(splat<T>(tap[1]), y, sums[r][1]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r < b.to_begin || r >= b.to_end) continue;
    T* to = b.to + r * b.to_columns;
    storeLanes<T>(to, alternate<0, T>(sums[r][0], sums[r][1], LaneIndices<T>()), c.kept[0]);
    storeLanes<T>(to + kLanes<T>, alternate<kLanes<T> / 2, T>(sums[r][0], sums[r][1], LaneIndices<T>()),
                  c.kept[1]);
  }
}

template <int kKernel, typename T>
SumColumn<1, (kKernel + 1) / 2, 2, T> sumColumnBackwards(const PlaneSums<T>& p, int64_t column) {
  SumColumn<1, (kKernel + 1) / 2, 2, T> c;
  c.column = column;
  const int64_t first = (column + p.low_column) / 2;
  for (int j = 0; j < (kKernel + 1) / 2; ++j)
    c.inside[0][j] = StepMask<1, T>(j - first, p.source.columns - first + j);
  for (int v = 0; v < 2; ++v)
    c.kept[v] = lanesWithin<T>(-column - v * kLanes<T>, p.columns - column - v * kLanes<T>);
  return c;
}

template <int kKernel, typename T>
__attribute__((noinline)) void sumsOfAnySizeBackwards(const PlaneSums<T>& p) {
  if constexpr (kRolls<kKernel>)
    if (sumsPickedBack(p)) return;
  if (sumsPairsBackwards<kKernel>(p)) return;
  if constexpr (kRolls<kKernel>)
    if (rollsBack(p)) return rollingStepsBack(p);
  constexpr int kRows = kSumRows<2>;
  const int64_t left = -(p.low_column & 1);
  auto mask = sumColumnBackwards<kKernel>(p, left);
  T taps[kKernel * kKernel];
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    orderTaps<kKernel>(p, plane, taps);
    for (int64_t row = p.row - ((p.row + p.low_row) & 1); row < p.row_end; row += kRows) {
      const int64_t window = (row + p.low_row) / 2;
      SumBlock<T> block = {.from = p.source.data + plane * p.source.plane + window * p.source.columns +
                                   (left + p.low_column) / 2,
                           .columns = p.source.columns,
                           .begin = p.source.row - window,
                           .end = p.source.row_end - window,
                           .taps = taps,
                           .to = p.result + plane * p.result_plane + row * p.columns + left,
                           .to_columns = p.columns,
                           .to_begin = p.row - row,
                           .to_end = p.row_end - row};
      const T* from_below = block.from + kRows / 2 * p.source.columns;
      const T* to_below = block.to + kRows * p.columns;
      for (int64_t column = left; column < p.columns;
           column += 2 * kLanes<T>, block.from += kLanes<T>, block.to += 2 * kLanes<T>) {
        askForLines<kRows / 2>(from_below + column / 2 * kRows / 2);
        askForLinesToWrite<2 * kRows>(to_below + column * kRows);
        if (mask.column != column) mask = sumColumnBackwards<kKernel>(p, column);
        sumBlockBackwards<kKernel, T>(mask, block);
      }
    }
  }
}

template <int kKernel, typename T>
void planeSumsBackwards(const PlaneSums<T>& p) {
  int64_t done = sumsSizedBack<kKernel>(p);
  if (done == 0) done = sumsInLanesBack<kKernel>(p);
  if (done == 0) done = sumsLargeStepsBack<kKernel>(p);

  if (done == p.planes) return;
  for (int64_t image = 0; image < p.images; ++image)
    sumsOfAnySizeBackwards<kKernel>(p.from(done).ofImage(image));
}

}  // namespace
}  // namespace gpuc
