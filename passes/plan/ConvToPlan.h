//===- ConvToPlan.h - Convolutions as a library's command ---------------------===//
#pragma once

#include "passes/plan/ProgramWriter.h"

namespace gpuc {

/// Where a product leaves the squares of its tiles: where their sum is to be if there is but one.
mlir::Value squaresFor(ProgramWriter &writer, mlir::Value sum, int64_t tiles, llvm::StringRef name);

/// Writes conv2d or one of its gradients as a plan.conv. An error for a layout that the target has not.
mlir::LogicalResult convertConvolution(ProgramWriter &writer, const Product &product);

} // namespace gpuc
