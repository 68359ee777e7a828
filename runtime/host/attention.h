// Attention and its gradient on the host, a block of scores at a time: prepared once when a plan is loaded,
// then run tile by tile by any threads.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/host/attention/problem.h"
#include "runtime/workspace/attention_shape.h"

namespace gpuc {

/// Attention of one shape, with its machine code. Immutable after create(): any number of threads may run it
/// at once.
///
/// A run is phaseCount() phases; between two phases the caller places a barrier. The tiles of a phase may be
/// split among threads in any way: each tile writes its own part of the results (or of the workspace), adds
/// up in an order that the shape and the kind of CPU fix, and so leaves the same bits whoever computes it.
class AttentionKernel {
 public:
  /// Generates the machine code. Errors: an element type or a width that the host has no kernel for; numbers
  /// that do not make attention; too small a workspace; a CPU without micro-kernels.
  static Result<AttentionKernel> create(const AttentionShape& shape, int64_t workspace_bytes);

  int phaseCount() const { return problem_.phase_count; }

  /// Tiles in a phase.
  int64_t tiles(int phase) const { return problem_.phases[phase].tiles; }

  /// What a tile takes, by estimate.
  double tileNs(int phase) const { return problem_.phases[phase].tile_ns; }

  /// Computes tiles [begin, end) of a phase. Allocates nothing; uses up to kAttentionStackBytes of stack.
  void run(int phase, const AttentionOperands& operands, int64_t begin, int64_t end) const;

 private:
  AttentionProblem problem_;
};

}  // namespace gpuc
