// Convolution and its two gradients on the host: prepared once when a plan is loaded, then run tile by tile
// by any threads.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/host/conv/problem.h"
#include "runtime/workspace/conv_workspace.h"

namespace gpuc {

/// A convolution of one shape, with its machine code. In f16 and bf16 the result is that of f32 on the same
/// numbers, rounded once to the nearest, ties to even. Immutable after create(): any number of threads may
/// run it at once.
///
/// A run is phaseCount() phases; between two phases the caller places a barrier. The tiles of a phase may be
/// split among threads in any way: each tile writes its own part of the result (or of the workspace), adds up
/// in an order that the shape and the kind of CPU fix, and so leaves the same bits whoever computes it.
class ConvKernel {
 public:
  /// Generates the machine code. Errors: an element type that the host has no kernel for; numbers that do not
  /// make a convolution; too small a workspace; a CPU without micro-kernels.
  static Result<ConvKernel> create(const ConvShape& shape, int64_t workspace_bytes);

  int phaseCount() const { return static_cast<int>(problem_.phases.size()); }

  /// Tiles in a phase.
  int64_t tiles(int phase) const { return problem_.phases[static_cast<size_t>(phase)].tiles; }

  /// What a tile takes, by estimate.
  double tileNs(int phase) const { return problem_.phases[static_cast<size_t>(phase)].tile_ns; }

  /// Computes tiles [begin, end) of a phase. Allocates nothing; uses up to kConvStackBytes of stack.
  void run(int phase, const ConvOperands& operands, int64_t begin, int64_t end) const;

 private:
  ConvProblem problem_;
};

}  // namespace gpuc
