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

/// A tile of the gradient as [element of a patch][output], the outputs in whole vectors.
template <typename T>
struct ChannelSums {
  int64_t row, column, rows, columns;  // of the gradient
  const T* sums;
  int64_t lanes;  // elements between rows of the sums
};

template <typename S>
void unpackChannelSums(const ConvProblem& problem, const ChannelSums<Computed<S>>& tile, S* to,
                       int64_t stride) {
  problem.patch_kernels->of<S>().channels.unpack({.channels = tile.rows,
                                                  .pixels = tile.columns,
                                                  .sums = tile.sums,
                                                  .pixel_stride = tile.lanes,
                                                  .places = nullptr,
                                                  .first_place = 0,
                                                  .picture = to,
                                                  .channel_stride = stride});
}

/// To the update. By itself, so that only tiles that are handed on touch this much stack.
template <typename T>
__attribute__((noinline)) void handOnChannelSums(const ConvProblem& problem, const ConvOperands& operands,
                                                 const ChannelSums<T>& tile) {
  alignas(64) std::byte scratch[kChannelsFilterRows * kChannelsRowBytes];
  T* sums = reinterpret_cast<T*>(scratch);
  const int64_t stride = problem.tiles->stride;
  unpackChannelSums(problem, tile, sums, stride);
  passOn<T>(problem, operands, {tile.row, tile.column, tile.rows, tile.columns, sums, stride});
}

/// To the gradient, or to whoever takes it.
template <typename S>
void leaveChannelSums(const ConvProblem& problem, const ConvOperands& operands,
                      const ChannelSums<Computed<S>>& tile) {
  if constexpr (!kIsWidened<S>)
    if (problem.update.compute) return handOnChannelSums(problem, operands, tile);
  const int64_t stride = problem.shape.patchRows();
  S* to = static_cast<S*>(operands.c) + tile.row * stride + tile.column;
  unpackChannelSums(problem, tile, to, stride);
  if constexpr (!kIsWidened<S>)
    passOn<S>(problem, operands, {tile.row, tile.column, tile.rows, tile.columns, to, stride});
}

}  // namespace gpuc
