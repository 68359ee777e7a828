// Transposing by squares of kLanes x kLanes in registers; included by vector_kernels.cpp alone (see
// vector.h).
#pragma once

#include "runtime/host/matmul/load.h"
#include "runtime/host/matmul/vector_kernels.h"

namespace gpuc {
namespace {

/// One stage of the butterfly: exchanges groups of kDistance lanes between rows kDistance apart. After the
/// stages kLanes/2, …, 2, 1 the square is transposed (Eklundh, "A fast computer method for matrix
/// transposing", 1972).
template <int kDistance, typename T>
inline void exchange(Vector<T> (&rows)[kLanes<T>]) {
  for (int i = 0; i < kLanes<T>; ++i) {
    if (i & kDistance) continue;
    Vector<T> x = rows[i];
    Vector<T> y = rows[i + kDistance];
    rows[i] = evenGroups<kDistance, T>(x, y, LaneIndices<T>());
    rows[i + kDistance] = oddGroups<kDistance, T>(x, y, LaneIndices<T>());
  }
  if constexpr (kDistance > 1) exchange<kDistance / 2, T>(rows);
}

/// kWhole: all kLanes rows and columns exist. Otherwise rows and columns say how many do.
template <bool kWhole, typename S>
inline void transposeSquare(const TransposeTile<S>& t, const S* source, Computed<S>* target, int64_t rows,
                            int64_t columns) {
  using T = Computed<S>;
  Vector<T> square[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) {
    if constexpr (kWhole)
      square[i] = load(source + i * t.source_stride);
    else if (i >= rows)
      square[i] = Vector<T>{};
    else
      square[i] = columns == kLanes<T> ? load(source + i * t.source_stride)
                                       : loadFirst(source + i * t.source_stride, columns);
  }
  exchange<kLanes<T> / 2, T>(square);
  for (int i = 0; i < kLanes<T>; ++i)
    if (kWhole || i < columns) store(target + i * t.target_stride, square[i]);
}

template <typename S>
void transposeTile(const TransposeTile<S>& t) {
  constexpr int64_t kSide = kLanes<Computed<S>>;
  for (int64_t column = 0; column < t.columns; column += kSide) {
    for (int64_t row = 0; row < t.rows; row += kSide) {
      const S* source = t.source + row * t.source_stride + column;
      Computed<S>* target = t.target + column * t.target_stride + row;
      int64_t rows = t.rows - row < kSide ? t.rows - row : kSide;
      int64_t columns = t.columns - column < kSide ? t.columns - column : kSide;
      if (rows == kSide && columns == kSide)
        transposeSquare<true>(t, source, target, rows, columns);
      else
        transposeSquare<false>(t, source, target, rows, columns);
    }
  }
}

}  // namespace
}  // namespace gpuc
