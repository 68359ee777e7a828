//===- TurnedWeights.h - What a loop multiplies by, turned before it --------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

/// Where a product in the loop is of few rows and of the transpose of what the loop only reads, x_t · Wᵀ,
/// turns that before the loop. The host packs a transposed operand for each product anew, which for few rows
/// costs as much as a third of the product.
void turnWeights(ir::ScanOp scan);

} // namespace gpuc
