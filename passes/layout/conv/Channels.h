//===- Channels.h - Where the channels of images lie --------------------------===//
#pragma once

#include "passes/layout/conv/LayoutGroups.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Puts convolutions that are written channels last, and poolings if `poolings`, between transposes, channels
/// first themselves.
void transposeToChannelsFirst(mlir::Block &block, bool poolings);

/// Puts the images that convolutions on tensor cores read and write channels last, with whatever is computed
/// between them, where that moves fewer bytes than it saves: decided for each group of images of the block
/// that hang together (LayoutGroups.h). Transposes are left at the edges of a group. Adds a decision
/// (base/Decisions.h) over each convolution.
void chooseLayouts(mlir::Block &block, const TargetDescription &device,
                   llvm::SmallVectorImpl<mlir::Attribute> &decisions);

/// Gives the images of these groups, all of one block, the order (N, H, W, C). What reads or makes one of
/// them elsewhere gets it by way of a transpose; reductions read them as they are.
void transposeToChannelsLast(mlir::Block &block, llvm::ArrayRef<LayoutGroup> groups);

/// Whether the reduction of an image folds all but its channels, which transposeToChannelsLast() does in two.
bool foldsAllButChannels(mlir::Operation *reduction);

} // namespace gpuc
