//===- PartBuffers.h - Parts that do not meet -------------------------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// Gives each part of a parallel bytes of its own in the buffers that nothing outside of it uses: those
/// become as many as there are parts.
void separateParts(plan::ParallelOp parallel);

/// Buffers of which separateParts() has given each part a place, in groups of such that a part needs one
/// behind the other, the largest first: those of a group may lie over one another. The problem is that of the
/// shared objects in Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference (2020);
/// this is their greedy by size.
llvm::SmallVector<llvm::SmallVector<plan::AllocOp>> buffersInTurn(plan::ParallelOp parallel);

/// Gives all of a group places as far from one another as those of the largest, so that a part's lie over one
/// another when the buffers do.
void alignInTurn(plan::ParallelOp parallel);

} // namespace gpuc
