//===- LongSums.h - Sums of a whole tensor ------------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Puts two sums in the place of each in `block` that folds a large tensor to one element: first the parts
/// under each index of its first dimensions, then those. One element is computed by one thread, or by one
/// block of a GPU; parts have all of them at work, each on what it may have computed itself.
void splitLongSums(mlir::Block &block, const TargetDescription &device);

} // namespace gpuc
