//===- IterationBuffers.h - Iterations that do not meet -----------------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// Gives each iteration of a parallel repeat bytes of its own in the buffers that nothing outside of it uses:
/// those become as many as there are iterations.
void separateIterations(plan::RepeatOp repeat);

/// Buffers of which separateIterations() has given each iteration a part, in groups of such that an iteration
/// needs one behind the other, the largest first: those of a group may have one place. The problem is that of
/// the shared objects in Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference (2020);
/// this is their greedy by size.
llvm::SmallVector<llvm::SmallVector<plan::AllocOp>> buffersInTurn(plan::RepeatOp repeat);

/// Gives all of a group parts as far from one another as those of the largest, so that an iteration's parts
/// lie over one another when the buffers do.
void alignInTurn(plan::RepeatOp repeat);

} // namespace gpuc
