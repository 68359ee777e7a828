// What follows each element of a convolution's result.
#pragma once

#include "runtime/host/conv/problem.h"

namespace gpuc {

/// Adjoining pixels of some outputs, stored just now.
template <typename S>
struct FinishedPixels {
  int64_t outputs, pixels;
  S* y;
  int64_t output_stride;
};

/// Adds to each output its bias, of those from `channel` on, and makes relu of it, while it is in the cache.
template <typename S>
void finish(const ConvProblem& problem, const ConvOperands& operands, int64_t channel,
            const FinishedPixels<S>& part) {
  if (!operands.bias && !problem.shape.relu) return;
  problem.vector_kernels->of<S>().finish(
      {.rows = part.outputs,
       .columns = part.pixels,
       .c = part.y,
       .ldc = part.output_stride,
       .bias = operands.bias ? static_cast<const S*>(operands.bias) + channel : nullptr,
       .bias_of_rows = true,
       .relu = problem.shape.relu});
}

}  // namespace gpuc
