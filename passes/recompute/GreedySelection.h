//===- GreedySelection.h - One value after another, dropped or kept -------------===//
#pragma once

#include "passes/recompute/BlockGraph.h"

namespace gpuc {

// Effort is counted in commands looked at; what is spent of it is all that is done.

/// Of the values that live where too much does, drops those that free the most for the time that they take,
/// until all is within the limit. False if nothing frees anything any more, though several together might, or
/// if the effort is spent.
bool dropToFit(const BlockGraph &graph, llvm::BitVector &kept, int64_t limit, int64_t effort);

/// Keeps whatever there is still room for, the dearest for its bytes first.
void keepWhatFits(const BlockGraph &graph, llvm::BitVector &kept, int64_t limit, int64_t effort);

/// Keeps a value in the place of another, as long as that saves time and effort is left. `kept` is within the
/// limit.
void swapWithin(const BlockGraph &graph, llvm::BitVector &kept, int64_t limit, int64_t effort);

} // namespace gpuc
