// Windows that adjoin: each element of one becomes a channel of its own; included by patch_kernels.cpp alone
// (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/matmul/transpose.h"

namespace gpuc {
namespace {

/// Lane i of vector j becomes element i · kSteps + j of what the vectors hold one behind the other.
template <int kSteps, typename T>
inline void pickSteps(Vector<T>* vectors) {
  if constexpr (kSteps > 1) {
    Vector<T> even[kSteps / 2], odd[kSteps / 2];
    for (int i = 0; i < kSteps / 2; ++i) {
      even[i] = everyOther<T>(vectors[2 * i], vectors[2 * i + 1], LaneIndices<T>());
      odd[i] = everyOdd<T>(vectors[2 * i], vectors[2 * i + 1], LaneIndices<T>());
    }
    pickSteps<kSteps / 2, T>(even), pickSteps<kSteps / 2, T>(odd);
    for (int i = 0; i < kSteps / 2; ++i) vectors[2 * i] = even[i], vectors[2 * i + 1] = odd[i];
  }
}

/// to[column][row] = from[row][column] of rows that adjoin, a vector of them at a time; how many it was.
template <int kColumns, typename S>
int64_t transposeAdjoining(const S* from, int64_t rows, S* to, int64_t to_row) {
  using T = Computed<S>;
  int64_t row = 0;
  for (; row + kLanes<T> <= rows; row += kLanes<T>, from += kColumns * kLanes<T>) {
    Vector<T> vectors[kColumns];
    for (int i = 0; i < kColumns; ++i) vectors[i] = load(from + i * kLanes<T>);
    pickSteps<kColumns, T>(vectors);
    for (int i = 0; i < kColumns; ++i) store(to + i * to_row + row, vectors[i]);
  }
  return row;
}

/// The same of up to a square, whatever the columns; touches nothing beyond them.
template <typename S>
void transposeSquareOf(const S* from, int64_t from_row, int64_t rows, int64_t columns, S* to,
                       int64_t to_row) {
  using T = Computed<S>;
  Vector<T> square[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i)
    if (i >= rows)
      square[i] = Vector<T>{};
    else
      square[i] = columns == kLanes<T> ? load(from + i * from_row) : loadFirst(from + i * from_row, columns);
  exchange<kLanes<T> / 2, T>(square);
  for (int i = 0; i < kLanes<T> && i < columns; ++i)
    rows == kLanes<T> ? store(to + i * to_row, square[i]) : storeFirst(to + i * to_row, square[i], rows);
}

/// One row of windows, of which each has `columns` elements.
template <typename S>
void takeWindowRow(const S* from, int64_t windows, int64_t columns, S* to, int64_t to_row) {
  constexpr int64_t kSide = kLanes<Computed<S>>;
  int64_t window = columns == 4 ? transposeAdjoining<4>(from, windows, to, to_row) : 0;
  for (; window < windows; window += kSide)
    for (int64_t column = 0; column < columns; column += kSide)
      transposeSquareOf(
          from + window * columns + column, columns, windows - window < kSide ? windows - window : kSide,
          columns - column < kSide ? columns - column : kSide, to + column * to_row + window, to_row);
}

template <typename S>
void takeWindows(const TakenWindows<S>& w) {
  const int64_t windows = w.rows * w.columns, picture_rows = w.rows * w.window_rows;
  S* to = w.values;
  for (int64_t channel = 0; channel < w.channels; ++channel) {
    const S* picture = w.picture + channel * w.picture_channel;
    for (int64_t i = 0; i < w.window_rows; ++i, to += w.window_columns * windows)
      for (int64_t row = i, at = 0; row < picture_rows; row += w.window_rows, at += w.columns)
        takeWindowRow(picture + row * w.picture_row, w.columns, w.window_columns, to + at, windows);
  }
}

}  // namespace
}  // namespace gpuc
