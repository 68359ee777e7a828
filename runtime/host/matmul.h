// Dense matrix multiplication on the host: prepared once when a plan is loaded, then run tile by tile by any
// threads.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/host/matmul/micro_kernel.h"
#include "runtime/host/matmul/plan.h"
#include "runtime/host/matmul/vector_kernels.h"
#include "runtime/workspace/matmul_workspace.h"

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
};

/// A matmul of one shape, with its machine code. In f16 and bf16 the result is that of f32 on the same
/// numbers, rounded once to the nearest, ties to even. Immutable after create(): any number of threads may
/// run it at once.
///
/// A run is phaseCount() phases; between two phases the caller places a barrier. The tiles of a phase may be
/// split among threads in any way: each tile writes its own part of c, sums over k in an order that the shape
/// and the kind of CPU fix, and so leaves the same bits whoever computes it.
class MatmulKernel {
 public:
  /// Generates the machine code (about 15 µs for each micro-kernel that is new to the process). Errors: an
  /// element type, extent or stride that cannot be; too small a workspace; a CPU without micro-kernels.
  static Result<MatmulKernel> create(const MatmulShape& shape, int64_t workspace_bytes);

  /// The same for a plan that the caller chose, where the tests compare the methods and the benchmarks tune
  /// them.
  static Result<MatmulKernel> createFromPlan(const MatmulPlan& plan);

  int phaseCount() const { return 1; }

  /// Tiles in a phase.
  int64_t tiles(int phase) const { return plan_.tileCount(); }

  /// What a tile takes, by estimate.
  double tileNs(int phase) const { return plan_.tile_ns; }

  /// Computes tiles [begin, end) of a phase. Allocates nothing; uses up to kMatmulStackBytes of stack.
  void run(int phase, const MatmulOperands& operands, int64_t begin, int64_t end) const;

  const MatmulPlan& plan() const { return plan_; }

 private:
  MatmulPlan plan_;
  MicroKernelSet micro_kernels_;
  const VectorKernelTable* vector_kernels_ = nullptr;
};

}  // namespace gpuc
