//===- Selection.h - What to keep within so many bytes -------------------------===//
#pragma once

#include "passes/recompute/BlockModel.h"

namespace gpuc {

/// Choices for a block, by BlockModel: in `steps` equal steps from all bytes down to the fewest that are
/// found. `least` is a choice that keeps little, from which the search begins as well as from all kept.
std::vector<llvm::BitVector> selectValues(const BlockModel &model, llvm::BitVector least, int steps);

} // namespace gpuc
