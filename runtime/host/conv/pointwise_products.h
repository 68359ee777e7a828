// Products of a pointwise convolution that pack what the product behind them reads; included by
// patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/conv/register_blocks.h"

namespace gpuc {
namespace {

constexpr int kPointwiseVectors = 4;

/// Row `row`, of which the last vector is filled up with zeros. What comes some rows later is asked for: rows
/// lie further apart than the processor foresees. Lines come from memory in pairs. Of rows whole pairs apart
/// whole ones are asked for: the block to the left has asked for what is before the first that begins here.
template <typename T>
inline __attribute__((always_inline)) void packAhead(const PackedAhead<T>& p, int64_t row) {
  constexpr int64_t kRowsAhead = 8;
  constexpr int64_t kPair = 128;
  const T* from = p.from + row * p.from_row;
  T* to = p.to + row * kPointwiseVectors * kLanes<T>;
  const T* asked = from + kRowsAhead * p.from_row;
  if (p.from_row * static_cast<int64_t>(sizeof(T)) % kPair == 0)
    asked = reinterpret_cast<const T*>((reinterpret_cast<intptr_t>(asked) + kPair - 1) / kPair * kPair);
  for (int64_t at = 0; at < p.columns; at += kLanes<T>) {
    __builtin_prefetch(asked + at);
    store(to + at, loadLanes<T>(from + at, lanesWithin<T>(0, p.columns - at)));
  }
}

template <typename T>
void packAllAhead(const PackedAhead<T>& p) {
  for (int64_t row = 0; row < p.rows; ++row) packAhead(p, row);
}

/// kRows x kVectors vectors of the result, and rows [next, next_end) of what is packed, spread evenly over
/// the terms. kAlong: the terms of a row lie side by side in w, else the rows do.
template <int kRows, int kVectors, bool kAlong, typename T>
__attribute__((noinline)) void pointwiseBlock(const PointwiseProducts<T>& p, int64_t row, int64_t next,
                                              int64_t next_end) {
  const int64_t row_step = kAlong ? p.w_step : 1, depth_step = kAlong ? 1 : p.w_step;
  const T *w = p.w + row * row_step, *packed = p.packed;
  T* to = p.result + row * p.result_row;
  const LaneMask<T> last = lanesWithin<T>(0, p.columns - (kVectors - 1) * kLanes<T>);
  Vector<T> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      const T* at = to + r * p.result_row + v * kLanes<T>;
      __builtin_prefetch(at, 1);
      sums[r][v] = !p.accumulate ? Vector<T>{} : v < kVectors - 1 ? load(at) : loadLanes<T>(at, last);
    }
  auto addTerms = [&](int64_t terms) __attribute__((always_inline)) {
    for (; terms > 0; --terms, w += depth_step, packed += kPointwiseVectors * kLanes<T>) {
      Vector<T> right[kVectors];
      for (int v = 0; v < kVectors; ++v) right[v] = load(packed + v * kLanes<T>);
      for (int r = 0; r < kRows; ++r) {
        const Vector<T> left = splat<T>(w[r * row_step]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = multiplyAdd<T>(left, right[v], sums[r][v]);
      }
    }
  };
  int64_t left = p.depth;
  if (next < next_end)
    for (const int64_t each = p.depth / (next_end - next); next < next_end; ++next, left -= each) {
      packAhead(p.next, next);
      addTerms(each);
    }
  addTerms(left);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      T* at = to + r * p.result_row + v * kLanes<T>;
      v < kVectors - 1 ? store(at, sums[r][v]) : storeLanes<T>(at, sums[r][v], last);
    }
}

/// Calls pointwiseBlock with `rows` as a constant.
template <int kRows, int kVectors, bool kAlong, typename T>
void withPointwiseRows(const PointwiseProducts<T>& p, int64_t row, int64_t rows, int64_t next,
                       int64_t next_end) {
  if constexpr (kRows > 1)
    if (rows < kRows) return withPointwiseRows<kRows - 1, kVectors, kAlong>(p, row, rows, next, next_end);
  pointwiseBlock<kRows, kVectors, kAlong>(p, row, next, next_end);
}

/// All rows: in as few blocks as possible, of nearly equal height, each with its share of what is packed.
template <int kVectors, bool kAlong, typename T>
void pointwiseRows(const PointwiseProducts<T>& p) {
  constexpr int kMost = kMostSums / kVectors < 8 ? kMostSums / kVectors : 8;
  const int64_t blocks = (p.rows + kMost - 1) / kMost;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t row = evenBegin(p.rows, blocks, block);
    withPointwiseRows<kMost, kVectors, kAlong>(p, row, evenBegin(p.rows, blocks, block + 1) - row,
                                               evenBegin(p.next.rows, blocks, block),
                                               evenBegin(p.next.rows, blocks, block + 1));
  }
}

template <bool kAlong, typename T>
void pointwiseProducts(const PointwiseProducts<T>& p) {
  const int64_t vectors = (p.columns + kLanes<T> - 1) / kLanes<T>;
  if (vectors >= 4)
    pointwiseRows<4, kAlong>(p);
  else if (vectors == 3)
    pointwiseRows<3, kAlong>(p);
  else if (vectors == 2)
    pointwiseRows<2, kAlong>(p);
  else
    pointwiseRows<1, kAlong>(p);
}

/// Of vectors of 64 bytes alone: others have too few registers for it.
template <typename T>
constexpr TypedPointwiseKernels<T> pointwiseKernels() {
  if constexpr (kVectorBytes == 64)
    return {packAllAhead<T>, pointwiseProducts<true, T>, pointwiseProducts<false, T>};
  else
    return {};
}

}  // namespace
}  // namespace gpuc
