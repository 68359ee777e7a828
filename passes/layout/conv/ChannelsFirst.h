//===- ChannelsFirst.h - Back to the order that models have -----------------===//
#pragma once

#include "mlir/IR/Block.h"

namespace gpuc {

/// Puts convolutions that are written channels last, and poolings if `poolings`, between transposes, channels
/// first themselves.
void transposeToChannelsFirst(mlir::Block &block, bool poolings);

} // namespace gpuc
