// Attention and its gradient on the host, a block of scores at a time: prepared once when a plan is loaded,
// then run tile by tile by any threads.
#pragma once

#include "runtime/host/attention/problem.h"

namespace gpuc {

/// A run uses up to kAttentionStackBytes of stack.
class AttentionKernel : public TiledKernel<AttentionProblem, AttentionOperands> {
 public:
  using TiledKernel::TiledKernel;

  /// Generates the machine code. Errors: an element type or a width that the host has no kernel for; numbers
  /// that do not make attention; too small a workspace; a CPU without micro-kernels.
  static Result<AttentionKernel> create(const AttentionShape& shape, int64_t workspace_bytes);
};

}  // namespace gpuc
