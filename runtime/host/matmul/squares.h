// The sum of the squares of a tile; included by vector_kernels.cpp alone (see vector.h).
#pragma once

#include "runtime/host/matmul/load.h"
#include "runtime/host/matmul/vector_kernels.h"

namespace gpuc {
namespace {

/// The sum of v, lane after lane.
template <typename T>
inline T sumOfLanes(Vector<T> v) {
  T sum = 0;
  for (int lane = 0; lane < kLanes<T>; ++lane) sum += v[lane];
  return sum;
}

/// Four sums side by side, which begin anew every few rows so that none gets long.
template <typename T>
void squaresOfTile(const SquaresTile<T>& t) {
  constexpr int64_t kStep = kLanes<T>, kSums = 4, kRows = 16;
  const int64_t whole = t.columns / kStep * kStep, rest = t.columns - whole;
  Vector<T> total = {};
  for (int64_t first = 0; first < t.rows; first += kRows) {
    Vector<T> sums[kSums] = {};
    const int64_t last = first + kRows < t.rows ? first + kRows : t.rows;
    for (int64_t row = first; row < last; ++row) {
      const T* c = t.c + row * t.ldc;
      auto add = [&](Vector<T> v, int64_t vector) __attribute__((always_inline)) {
        sums[vector % kSums] = multiplyAdd<T>(v, v, sums[vector % kSums]);
      };
      for (int64_t i = 0; i < whole; i += kStep) add(load(c + i), i / kStep);
      if (rest > 0) add(loadFirst(c + whole, rest), whole / kStep);
    }
    total += (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  *t.sum = sumOfLanes<T>(total);
}

}  // namespace
}  // namespace gpuc
