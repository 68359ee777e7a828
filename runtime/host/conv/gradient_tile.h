// What becomes of a tile of a filter's gradient as soon as its sums are made.
#pragma once

#include "runtime/host/conv/problem.h"

namespace gpuc {

/// Where a tile begins in the gradient, and where its sums are made: there, or aside, where its rows lie as
/// far apart as GradientTiles has it.
template <typename T>
struct GradientTile {
  int64_t row, column, rows, columns;
  T* sums;
  int64_t stride;
};

/// Adds up its squares, and hands it to the update, where that is wanted.
template <typename T>
void passOn(const ConvProblem& problem, const ConvOperands& operands, const GradientTile<T>& tile) {
  if (!problem.tiles) return;
  const int64_t number = problem.tiles->number(tile.row, tile.column);
  if (operands.squares)
    problem.vector_kernels->of<T>().squares(
        {tile.rows, tile.columns, tile.sums, tile.stride, static_cast<T*>(operands.squares) + number});
  if (problem.update.compute)
    problem.update.handOn(number, tile.sums, tile.row * tile.stride + tile.column, operands.of_update);
}

}  // namespace gpuc
