//===- LoopChunks.h - What loops compute again, chunk by chunk ---------===//
//
// gpuc-cut-scans makes a loop over chunks of a long loop over time. What its forward pass stacks for the
// same chunk of a backward one alone need not be computed again for all chunks at once: the backward loop
// does it for each when it comes to it, from what was carried into the chunk. So of T steps in chunks of
// √T live √T of what chunks carry, and √T of what steps compute.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/recompute/ForwardPass.h"

namespace gpuc {

/// Has the backward loops compute again what is `dropped` of such stacks (ForwardPass::isOfChunks). Loops
/// that other values of `dropped` come from are built anew: it holds their new results afterwards. The
/// forward pass is of no use any more.
void recomputeInChunks(const ForwardPass &forward, llvm::DenseSet<mlir::Value> &dropped);

} // namespace gpuc
