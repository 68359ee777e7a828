//===- ConvToPlan.h - Convolutions as a library's command ---------------------===//
#pragma once

#include "passes/plan/ProgramWriter.h"
#include "runtime/workspace/matmul_workspace.h"

namespace gpuc {

/// Where a product leaves the squares of its tiles: where their sum is to be if there is but one.
mlir::Value squaresFor(ProgramWriter &writer, mlir::Value sum, int64_t tiles, llvm::StringRef name);

/// Writes the product of an op's two operands as a plan.matmul of this shape.
mlir::LogicalResult writeMatmul(ProgramWriter &writer, const Product &product, const MatmulShape &shape);

/// Writes conv2d or one of its gradients as a plan.conv, or on the host as a plan.matmul where that is the
/// same (productOf). An error for a layout that the target has not.
mlir::LogicalResult convertConvolution(ProgramWriter &writer, const Product &product);

} // namespace gpuc
