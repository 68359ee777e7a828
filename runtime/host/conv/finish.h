// What follows each element of a convolution's result.
#pragma once

#include "runtime/host/conv/problem.h"

namespace gpuc {

/// Adjoining pixels of some channels of the result, stored just now.
template <typename S>
struct FinishedPixels {
  int64_t channels, pixels;
  S* c;
  int64_t channel_stride;
};

/// Adds to each channel its bias, of those from `channel` on, and makes relu of it, or masks it, while it is
/// in the cache.
template <typename S>
void finish(const ConvProblem& problem, const ConvOperands& operands, int64_t channel,
            const FinishedPixels<S>& part) {
  if (!operands.bias && !operands.mask && !problem.shape.relu) return;
  const int64_t first = part.c - static_cast<const S*>(operands.c);
  problem.vector_kernels->of<S>().finish(
      {.rows = part.channels,
       .columns = part.pixels,
       .c = part.c,
       .ldc = part.channel_stride,
       .bias = operands.bias ? static_cast<const S*>(operands.bias) + channel : nullptr,
       .bias_of_rows = true,
       .relu = problem.shape.relu,
       .mask = operands.mask ? static_cast<const S*>(operands.mask) + first : nullptr});
}

}  // namespace gpuc
