// Dense matrix multiplication on the host: prepared once when a plan is loaded, then run tile by tile by any
// threads.
#pragma once

#include <vector>

#include "runtime/host/matmul/micro_kernel.h"
#include "runtime/host/matmul/vector_kernels.h"
#include "runtime/host/tile_update.h"
#include "runtime/host/tiled_kernel.h"
#include "runtime/workspace/matmul_plan.h"

namespace gpuc {

/// Addresses of one execution. Aligned to their element type at least; 64 bytes are faster. c overlaps no
/// other.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;           // overwritten; read only where the shape accumulates: old NaNs do not survive
  const void* bias = nullptr;  // [n]; null exactly where the shape has none
  void* workspace = nullptr;   // matmulWorkspaceBytes(shape), null where that is 0
  const void* mask = nullptr;  // as c lies; null exactly where the shape has none
  void* squares = nullptr;     // an element for each tile; null exactly where the shape has none
  void* const* of_update = nullptr;  // the update's, but for the tile; where there is one, c is null
};

/// A plan with its machine code.
struct MatmulProblem {
  MatmulPlan plan;
  MicroKernelSet micro_kernels;
  const VectorKernelTable* vector_kernels = nullptr;
  TileUpdate update;  // of tiles as the plan counts them, whose rows lie sumStride() apart
  std::vector<TilePhase<MatmulProblem, MatmulOperands>> phases;  // one
};

/// In f16 and bf16 the result is that of f32 on the same numbers, rounded once to the nearest, ties to even.
/// A run uses up to kMatmulStackBytes of stack.
class MatmulKernel : public TiledKernel<MatmulProblem, MatmulOperands> {
 public:
  using TiledKernel::TiledKernel;

  /// Generates the machine code (about 15 µs for each micro-kernel that is new to the process). Errors: an
  /// element type, extent or stride that cannot be; too small a workspace; a CPU without micro-kernels.
  static Result<MatmulKernel> create(const MatmulShape& shape, int64_t workspace_bytes);

  /// The same of a weight's gradient, which its update takes. Errors: a shape of which planMatmulOfUpdate()
  /// has no plan; more operands than kMostUpdateOperands.
  static Result<MatmulKernel> create(const MatmulShape& shape, const TileUpdate& update);

  /// The same for a plan that the caller chose, where the tests compare the methods and the benchmarks tune
  /// them.
  static Result<MatmulKernel> createFromPlan(const MatmulPlan& plan);

  const MatmulPlan& plan() const { return problem_.plan; }
};

}  // namespace gpuc
