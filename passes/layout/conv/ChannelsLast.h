//===- ChannelsLast.h - Images transposed -----------------------------------===//
#pragma once

#include "passes/layout/conv/LayoutGroups.h"

namespace gpuc {

/// Whether the reduction of an image folds all but its channels, which is then done in two.
bool foldsAllButChannels(mlir::Operation *reduction);

/// Gives the images of these groups, all of one block, the order (N, H, W, C). What reads or makes one of
/// them elsewhere gets it by way of a transpose; reductions read them as they are.
void transposeToChannelsLast(mlir::Block &block, llvm::ArrayRef<LayoutGroup> groups);

} // namespace gpuc
