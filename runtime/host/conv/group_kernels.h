// Products of pixels whose channels are groups side by side; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/conv/register_blocks.h"
#include "runtime/host/matmul/load.h"

namespace gpuc {
namespace {

/// In each lane what lane `kTerm` of its group of kGroup has.
template <int kGroup, int kTerm, typename T, std::size_t... kLane>
inline Vector<T> splatInGroups(Vector<T> x, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(x, x, (static_cast<int>(kLane) / kGroup * kGroup + kTerm)...);
}

/// A pixel's channels from a group's first on, of which every lane gets those of its own group, one by one.
template <int kGroup, typename T>
struct GroupTerms {
  static constexpr bool kWithin = kGroup <= kLanes<T>;  // whether a vector has whole groups
  Vector<T> x;
  const T* pixel;

  GroupTerms(const T* at, int64_t column) {
    if constexpr (kWithin)
      x = load(at + column);
    else
      pixel = at + column / kGroup * kGroup;
  }

  template <int kTerm>
  Vector<T> term() const {
    if constexpr (kWithin)
      return splatInGroups<kGroup, kTerm, T>(x, LaneIndices<T>());
    else
      return splat<T>(pixel[kTerm]);
  }
};

/// Calls run with each number below kCount as a constant.
template <typename Run, int... kIndex>
inline __attribute__((always_inline)) void forEachIndex(std::integer_sequence<int, kIndex...>, Run run) {
  (run(std::integral_constant<int, kIndex>()), ...);
}

//===----------------------------------------------------------------------===//
// Along terms
//===----------------------------------------------------------------------===//

/// kRows pixels of a vector of sums.
template <int kGroup, int kRows, typename T>
__attribute__((noinline)) void groupBlock(const PixelProducts<T>& p, int64_t row, int64_t column) {
  T* to = p.sums + row * p.sums_row + column;
  Vector<T> sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = p.accumulate ? load(to + r * p.sums_row) : Vector<T>{};
  for (int64_t term = 0; term < p.term_count; ++term) {
    const T* a = p.a + p.terms[term].a + row * p.a_step;
    const T* b = p.b + p.terms[term].b + column;
    Vector<T> weights[kGroup];
    for (int i = 0; i < kGroup; ++i) weights[i] = load(b + i * p.b_step);
    for (int r = 0; r < kRows; ++r) {
      const GroupTerms<kGroup, T> x(a + r * p.a_step, column);
      forEachIndex(std::make_integer_sequence<int, kGroup>(), [&](auto i) __attribute__((always_inline)) {
        sums[r] = multiplyAdd<T>(x.template term<i>(), weights[i], sums[r]);
      });
    }
  }
  for (int r = 0; r < kRows; ++r) store(to + r * p.sums_row, sums[r]);
}

/// Calls groupBlock with `rows` as a constant.
template <int kGroup, int kRows, typename T>
void withGroupRows(const PixelProducts<T>& p, int64_t row, int64_t rows, int64_t column) {
  if constexpr (kRows > 1)
    if (rows < kRows) return withGroupRows<kGroup, kRows - 1>(p, row, rows, column);
  groupBlock<kGroup, kRows>(p, row, column);
}

template <int kGroup, typename T>
void groupColumns(const PixelProducts<T>& p) {
  constexpr int kMost = kVectorBytes == 64 ? 8 : 4;
  const int64_t blocks = (p.rows + kMost - 1) / kMost;
  for (int64_t column = 0; column < p.columns; column += kLanes<T>)
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = evenBegin(p.rows, blocks, block);
      withGroupRows<kGroup, kMost>(p, row, evenBegin(p.rows, blocks, block + 1) - row, column);
    }
}

template <typename T>
void groupTermsAlong(const PixelProducts<T>& p) {
  p.group == 4 ? groupColumns<4>(p) : groupColumns<8>(p);
}

//===----------------------------------------------------------------------===//
// Along rows
//===----------------------------------------------------------------------===//

/// A vector of sums for each term of a group, in kSets that take pixels by turns.
template <int kGroup, int kSets, typename T>
__attribute__((noinline)) void groupRows(const PixelProducts<T>& p, int64_t column) {
  Vector<T> sums[kSets][kGroup] = {};
  auto add = [&](const T* a, const T* b, Vector<T>(&to)[kGroup]) __attribute__((always_inline)) {
    const GroupTerms<kGroup, T> x(a, column);
    const Vector<T> y = load(b);
    forEachIndex(std::make_integer_sequence<int, kGroup>(), [&](auto i) __attribute__((always_inline)) {
      to[i] = multiplyAdd<T>(x.template term<i>(), y, to[i]);
    });
  };
  for (int64_t term = 0; term < p.term_count; ++term) {
    const T* a = p.a + p.terms[term].a;
    const T* b = p.b + p.terms[term].b + column;
    int64_t d = p.terms[term].depth;
    for (; d >= kSets; d -= kSets)
      for (int set = 0; set < kSets; ++set, a += p.a_step, b += p.b_step) add(a, b, sums[set]);
    for (int set = 0; set < kSets - 1; ++set, --d, a += p.a_step, b += p.b_step)
      if (d > 0) add(a, b, sums[set]);
  }
  for (int i = 0; i < kGroup; ++i) {
    T* to = p.sums + i * p.sums_row + column;
    Vector<T> sum = sums[0][i];
    for (int set = 1; set < kSets; ++set) sum += sums[set][i];
    store(to, p.accumulate ? load(to) + sum : sum);
  }
}

template <typename T>
void groupRowsAlong(const PixelProducts<T>& p) {
  for (int64_t column = 0; column < p.columns; column += kLanes<T>)
    p.group == 4 ? groupRows<4, 2>(p, column) : groupRows<8, 1>(p, column);
}

}  // namespace
}  // namespace gpuc
