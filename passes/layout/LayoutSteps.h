//===- LayoutSteps.h - What gpuc-layout does to matrix products ---------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Computes what a block has between transposes and their inverses, element by element, in the order that it
/// comes in, without those; reductions of it fold in that order, too.
void cancelTransposes(mlir::Block &block);

/// Puts zeros around the operands of a block's matrix products on tensor cores, where their extents miss 16
/// bytes and that pays; adds a decision (base/Decisions.h) over each of these products.
void padProducts(mlir::Block &block, const TargetDescription &device,
                 llvm::SmallVectorImpl<mlir::Attribute> &decisions);

/// Where a product in the loop is of few rows and of the transpose of what the loop only reads, x_t · Wᵀ,
/// transposes that once, before the loop. The host packs a transposed operand for each product anew, which
/// for few rows costs as much as a third of the product.
void preTransposeWeights(ir::ScanOp scan, const TargetDescription &device);

} // namespace gpuc
