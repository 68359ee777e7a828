// What the compiler must know of a matmul on the host: its shape, and the workspace to reserve for it in the
// plan.
#pragma once

#include <cstdint>

#include "runtime/base/data_type.h"

namespace gpuc {

/// c[batch, m, n] = op(a) · op(b) (+ c), all dense and row-major, and what follows each element, in this
/// order: the bias is added to it, max(…, 0) is taken of it. Each of these is rounded by itself. Or, instead
/// of both, it becomes 0 where the mask is 0 or less. Or c is a weight's gradient that is not stored: each
/// tile of it is handed to the weight's update. Of a gradient, each tile's squares may be added up as well.
///   a is stored [m, k], or [k, m] with transpose_a;  b is stored [k, n], or [n, k] with transpose_b;
///   bias, where there is one, is [n] and is added to every row of c;  mask lies as c does.
struct MatmulShape {
  DataType type = DataType::f32;  // of all operands: f64, f32, f16 or bf16; the last two are summed in f32
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t batch_stride_a = 0;  // elements from one matrix to the next; 0: the same matrix for the whole batch
  int64_t batch_stride_b = 0;
  bool bias = false;
  bool accumulate = false;  // add to what c holds; nothing follows then
  bool relu = false;
  bool mask = false;
  bool update = false;
  bool squares = false;
};

/// That an update may have, the product's tile among them.
inline constexpr size_t kMostUpdateOperands = 32;

/// Bytes of workspace that the host's matmul of this shape needs, aligned as every buffer is.
///
/// It is 0 for every shape: operands are packed a tile at a time, on the stack of the thread that computes
/// the tile (at most kMatmulStackBytes in runtime/workspace/matmul_plan.h). Packing whole operands here
/// instead would add as much as the largest weight to the plan's peak, and a barrier to each matmul. Plans
/// reserve what this function says and MatmulKernel::create checks it, so that a kernel which does need a
/// workspace changes no other code.
constexpr int64_t matmulWorkspaceBytes(const MatmulShape& /*shape*/) { return 0; }

}  // namespace gpuc
