// Convolution and its two gradients on the host: prepared once when a plan is loaded, then run tile by tile
// by any threads.
#pragma once

#include "runtime/host/conv/problem.h"

namespace gpuc {

/// In f16 and bf16 the result is that of f32 on the same numbers, rounded once to the nearest, ties to even.
/// A run uses up to kConvStackBytes of stack.
class ConvKernel : public TiledKernel<ConvProblem, ConvOperands> {
 public:
  using TiledKernel::TiledKernel;

  /// Generates the machine code. Errors: an element type that the host has no kernel for; numbers that do not
  /// make a convolution; too small a workspace; a CPU without micro-kernels.
  static Result<ConvKernel> create(const ConvShape& shape, int64_t workspace_bytes);
  /// By a method that fitsMethod().
  static Result<ConvKernel> create(const ConvShape& shape, ConvMethod method, int64_t workspace_bytes);

  /// Before the first run: has a filter's gradient handed to its update, instead of stored. Errors: a shape
  /// of which convGradientTiles() has no tiles; more operands than kMostUpdateOperands.
  Status handTo(const TileUpdate& update);

  /// In which a filter's gradient may be handed on.
  const std::optional<GradientTiles>& gradientTiles() const { return problem_.tiles; }

  /// Computes tiles [begin, end) of a phase. Allocates nothing.
  void run(int phase, const ConvOperands& operands, int64_t begin, int64_t end) const {
    TiledKernel::run(phase, operandsOfPhase(problem_, static_cast<size_t>(phase), operands), begin, end);
  }
};

}  // namespace gpuc
