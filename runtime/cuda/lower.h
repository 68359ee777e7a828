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
  const Libraries& libraries;
  CUdeviceptr arena;
  std::span<const CUfunction> kernels;  // in the plan's order
};

/// Resolves a program. `pinned`: pinnedBytes(plan, program) bytes for its inputs and outputs. Errors: what no
/// library computes, a copy onto itself; named by their layer.
Result<std::unique_ptr<CudaProgram>> lowerProgram(const fb::Plan& plan, const fb::Program& program,
                                                  std::byte* pinned, const LoweringContext& context);

}  // namespace gpuc::cuda
