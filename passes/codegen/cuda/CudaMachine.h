//===- CudaMachine.h - LLVM's and NVIDIA's side of a GPU target -------------===//
#pragma once

#include "passes/codegen/Optimizer.h"
#include "passes/codegen/cuda/CudaCode.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace gpuc::codegen {

/// LLVM's code generator for `target`, without FMA contraction. Null, with the reason, if LLVM lacks NVPTX.
std::unique_ptr<llvm::TargetMachine> createMachine(const CudaTarget &target, int optLevel,
                                                   std::string &error);

/// Rewrites what kernels are emitted in (gpu, scf, arith, math) to the LLVM and NVVM dialects.
mlir::LogicalResult lowerToNvvm(mlir::gpu::GPUModuleOp module);

/// PTX to machine code through `ptxas`. Fails with ptxas's own words in `error`.
mlir::FailureOr<std::string> assembleCubin(llvm::StringRef ptxas, llvm::StringRef ptx,
                                           const CudaTarget &target, std::string &error);

} // namespace gpuc::codegen
