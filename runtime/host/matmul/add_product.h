// Products of few terms, added to what is there; included by vector_kernels.cpp alone (see vector.h).
#pragma once

#include "runtime/host/matmul/load.h"
#include "runtime/host/matmul/vector_kernels.h"

namespace gpuc {
namespace {

/// kRows x kColumns vectors of c, the last one of `last` lanes. LIBXSMM's kernels begin with what c holds;
/// these sums begin with 0, and are added to c from the registers in which they are made.
template <int kRows, int kColumns, typename T>
inline void addBlock(const ProductTile<T>& t, int64_t row, int64_t column, int64_t last = kLanes<T>) {
  const bool whole = last == kLanes<T>;
  auto isWhole = [whole](int i) __attribute__((always_inline)) { return i + 1 < kColumns || whole; };
  auto part = [=](const T* of_row, int i) __attribute__((always_inline)) {
    of_row += i * kLanes<T>;
    return isWhole(i) ? load(of_row) : loadFirst(of_row, last);
  };
  // By value: what is stored to c could be t's, for all that a compiler knows.
  const int64_t row_step = t.a_row_step, k_step = t.a_k_step, ldb = t.ldb, ldc = t.ldc;
  const T* a = t.a + row * row_step;
  const T* b = t.b + column;
  T* c = t.c + row * ldc + column;
  Vector<T> sums[kRows][kColumns] = {};
  for (int64_t k = 0; k < t.k; ++k, a += k_step, b += ldb) {
    Vector<T> right[kColumns];
    for (int i = 0; i < kColumns; ++i) right[i] = part(b, i);
    for (int r = 0; r < kRows; ++r) {
      const Vector<T> left = splat<T>(a[r * row_step]);
      for (int i = 0; i < kColumns; ++i) sums[r][i] = multiplyAdd<T>(left, right[i], sums[r][i]);
    }
  }
  for (int r = 0; r < kRows; ++r, c += ldc)
    for (int i = 0; i < kColumns; ++i) {
      const Vector<T> added = part(c, i) + sums[r][i];
      isWhole(i) ? store(c + i * kLanes<T>, added) : storeFirst(c + i * kLanes<T>, added, last);
    }
}

template <int kColumns, typename T>
inline void addColumns(const ProductTile<T>& t, int64_t column, int64_t last = kLanes<T>) {
  int64_t row = 0;
  for (; row + 6 <= t.rows; row += 6) addBlock<6, kColumns>(t, row, column, last);
  for (; row + 4 <= t.rows; row += 4) addBlock<4, kColumns>(t, row, column, last);
  for (; row < t.rows; ++row) addBlock<1, kColumns>(t, row, column, last);
}

template <typename T>
void addProduct(const ProductTile<T>& t) {
  // 6 x 4 vectors of sums want the 32 registers of AVX-512.
  constexpr int kColumns = kVectorBytes == 64 ? 4 : 2;
  int64_t column = 0;
  for (; column + kColumns * kLanes<T> <= t.columns; column += kColumns * kLanes<T>)
    addColumns<kColumns>(t, column);
  for (; column + kLanes<T> <= t.columns; column += kLanes<T>) addColumns<1>(t, column);
  if (column < t.columns) addColumns<1>(t, column, t.columns - column);
}

}  // namespace
}  // namespace gpuc
