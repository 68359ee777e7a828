//===- CudaSegments.h - Several kernels as one grid --------------------------===//
#pragma once

#include "passes/codegen/cuda/CudaCode.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace gpuc::codegen {

/// Emits a segmented kernel (Segments.h) into `module`.
void emitCudaSegments(mlir::gpu::GPUModuleOp module, llvm::StringRef symbol, mlir::Block &body);

/// How it is launched.
CudaSchedule scheduleCudaSegments(mlir::Block &body);

/// Of a kernel whose one parameter is an array: how many pointers it has. lowerToNvvm makes it so.
inline constexpr llvm::StringLiteral kOperandArrayAttr = "gpuc.operand_array";

} // namespace gpuc::codegen
