//===- ChooseLayouts.h - Channels last, where that pays ---------------------===//
#pragma once

#include "passes/layout/LayoutReport.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Puts the images that convolutions on tensor cores read and write channels last, with whatever is computed
/// between them, where that moves fewer bytes than it saves (LayoutCost.h): decided for each group of images
/// of the block that hang together (LayoutGroups.h). Transposes are left at the edges of a group. Adds an
/// entry for each convolution.
void chooseLayouts(mlir::Block &block, const TargetDescription &device,
                   llvm::SmallVectorImpl<LayoutEntry> &entries);

} // namespace gpuc
