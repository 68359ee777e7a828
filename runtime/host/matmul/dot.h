// Products of rows with rows; included by vector_kernels.cpp alone (see vector.h).
#pragma once

#include "runtime/host/matmul/load.h"
#include "runtime/host/matmul/vector_kernels.h"

namespace gpuc {
namespace {

/// Adds the lanes kDistance apart of x, and of y: half-way to the sums of both, in one vector.
template <int kDistance, typename T>
inline Vector<T> addHalves(Vector<T> x, Vector<T> y) {
  return evenGroups<kDistance, T>(x, y, LaneIndices<T>()) + oddGroups<kDistance, T>(x, y, LaneIndices<T>());
}

/// Adds up the lanes within each group of 2·kDistance lanes; every lane's group sum stands at the group's
/// start.
template <int kDistance, typename T>
inline Vector<T> addGroups(Vector<T> v) {
  if constexpr (kDistance >= 1)
    return addGroups<kDistance / 2, T>(addHalves<kDistance, T>(v, v));
  else
    return v;
}

/// The sum of the lanes, halves first: ((0 + W/2) + (W/4 + 3W/4)) + … The same tree as in sum4.
template <typename T>
inline T sum(Vector<T> v) {
  return addGroups<kLanes<T> / 2, T>(v)[0];
}

/// The sums of four vectors, in a third of the shuffles that four calls of sum() take.
template <typename T>
inline void sum4(const Vector<T>* v, T* sums) {
  constexpr int kHalf = kLanes<T> / 2;
  Vector<T> first = addHalves<kHalf, T>(v[0], v[1]);
  Vector<T> second = addHalves<kHalf, T>(v[2], v[3]);
  if constexpr (kHalf == 1) {
    sums[0] = first[0], sums[1] = first[1], sums[2] = second[0], sums[3] = second[1];
  } else {
    constexpr int kQuarter = kHalf / 2;
    Vector<T> all = addGroups<kQuarter / 2, T>(addHalves<kQuarter, T>(first, second));
    sums[0] = all[0], sums[1] = all[kHalf], sums[2] = all[kQuarter], sums[3] = all[kHalf + kQuarter];
  }
}

/// kRows x kColumns elements of c, each with its own vector of partial sums.
template <int kRows, int kColumns, typename S>
inline void dotBlock(const DotTile<S>& t, int64_t row, int64_t column) {
  using T = Computed<S>;
  const S* a = t.a + row * t.lda;
  const S* b = t.b + column * t.ldb;
  Vector<T> partial[kRows][kColumns] = {};
  auto step = [&](auto loadAt, int64_t i) __attribute__((always_inline)) {
    Vector<T> left[kRows];
    for (int r = 0; r < kRows; ++r) left[r] = loadAt(a + r * t.lda + i);
    for (int s = 0; s < kColumns; ++s) {
      Vector<T> right = loadAt(b + s * t.ldb + i);
      for (int r = 0; r < kRows; ++r) partial[r][s] = multiplyAdd<T>(left[r], right, partial[r][s]);
    }
  };
  const int64_t whole = t.k / kLanes<T> * kLanes<T>;
  for (int64_t i = 0; i < whole; i += kLanes<T>)
    step([](const S* address) __attribute__((always_inline)) { return load(address); }, i);
  if (const int64_t rest = t.k - whole; rest > 0)
    step([rest](const S* address) __attribute__((always_inline)) { return loadFirst(address, rest); }, whole);

  for (int r = 0; r < kRows; ++r) {
    T sums[kColumns];
    if constexpr (kColumns % 4 == 0)
      for (int s = 0; s < kColumns; s += 4) sum4<T>(&partial[r][s], &sums[s]);
    else
      for (int s = 0; s < kColumns; ++s) sums[s] = sum<T>(partial[r][s]);
    T* c = t.c + (row + r) * t.ldc + column;
    for (int s = 0; s < kColumns; ++s) c[s] = sums[s];
  }
}

/// kRows rows of c. One row alone takes eight columns at a time, so that enough sums are under way to hide
/// the latency of an addition and enough rows of b to keep the memory busy.
template <int kRows, typename S>
inline void dotRows(const DotTile<S>& t, int64_t row) {
  constexpr int kColumns = kRows == 1 ? 8 : 4;
  int64_t column = 0;
  for (; column + kColumns <= t.columns; column += kColumns) dotBlock<kRows, kColumns>(t, row, column);
  for (; column < t.columns; ++column) dotBlock<kRows, 1>(t, row, column);
}

template <typename S>
void dotTile(const DotTile<S>& t) {
  // 4 x 4 vectors of sums want the 32 registers of AVX-512.
  constexpr int kRows = kVectorBytes == 64 ? 4 : 2;
  int64_t row = 0;
  for (; row + kRows <= t.rows; row += kRows) dotRows<kRows>(t, row);
  for (; row < t.rows; ++row) dotRows<1>(t, row);
}

}  // namespace
}  // namespace gpuc
