//===- LayoutSteps.h - What gpuc-layout does to a block ----------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Puts convolutions that are written channels last, and poolings if `poolings`, between transposes, channels
/// first themselves.
void transposeToChannelsFirst(mlir::Block &block, bool poolings);

/// Puts the images that convolutions on tensor cores read and write channels last, with whatever is computed
/// between them, where that moves fewer bytes than it saves: decided for each group of images of the block
/// that hang together (conv/LayoutGroups.h). Transposes are left at the edges of a group. Adds a decision
/// (base/Decisions.h) over each convolution.
void chooseLayouts(mlir::Block &block, const TargetDescription &device,
                   llvm::SmallVectorImpl<mlir::Attribute> &decisions);

/// Puts zeros around the operands of a block's matrix products on tensor cores, where their extents miss 16
/// bytes and that pays; adds a decision over each of these products.
void padProducts(mlir::Block &block, const TargetDescription &device,
                 llvm::SmallVectorImpl<mlir::Attribute> &decisions);

/// Where a product in the loop is of few rows and of the transpose of what the loop only reads, x_t · Wᵀ,
/// transposes that once, before the loop. The host packs a transposed operand for each product anew, which
/// for few rows costs as much as a third of the product.
void preTransposeWeights(ir::ScanOp scan, const TargetDescription &device);

} // namespace gpuc
