//===- PadProducts.h - Extents that tensor cores take at full speed ---------===//
#pragma once

#include "passes/layout/LayoutReport.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Puts zeros around the operands of a block's matrix products on tensor cores, where their extents miss 16
/// bytes and that pays; adds an entry for each of these products.
void padProducts(mlir::Block &block, const TargetDescription &device,
                 llvm::SmallVectorImpl<LayoutEntry> &entries);

} // namespace gpuc
