//===- PreTransposedWeights.h - Transposed once, before a loop --------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Where a product in the loop is of few rows and of the transpose of what the loop only reads, x_t · Wᵀ,
/// transposes that once, before the loop. The host packs a transposed operand for each product anew, which
/// for few rows costs as much as a third of the product.
void preTransposeWeights(ir::ScanOp scan, const TargetDescription &device);

} // namespace gpuc
