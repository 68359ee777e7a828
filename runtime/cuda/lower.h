// From the plan's commands to addresses and CUDA functions.
#pragma once

#include <memory>
#include <span>

#include "runtime/cuda/command.h"
#include "runtime/plan/plan.h"

namespace gpuc::cuda {

/// What the programs of a plan share.
struct LoweringContext {
  const Driver& driver;
  const BlasHandle& blas;          // null if the plan has no matmul
  std::span<const DnnHandle> dnn;  // by stream; null where the plan has no convolution
  CUdeviceptr arena;
  std::span<const CUfunction> kernels;  // in the plan's order
};

/// Whether any command of the plan is a matmul.
bool hasMatmul(const fb::Plan& plan);

/// Whether any program of the plan has a convolution on its stream of this index.
bool hasConvOnStream(const fb::Plan& plan, size_t stream);

/// Resolves a program. `pinned`: pinnedBytes(plan, program) bytes for its inputs and outputs. Errors: a
/// matmul that cuBLASLt has no algorithm for, a convolution that cuDNN has no engine for, a copy onto itself;
/// named by their layer.
Result<std::unique_ptr<CudaProgram>> lowerProgram(const fb::Plan& plan, const fb::Program& program,
                                                  std::byte* pinned, const LoweringContext& context);

}  // namespace gpuc::cuda
