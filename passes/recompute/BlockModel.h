//===- BlockModel.h - A block of a step as plain data ---------------------------===//
#pragma once

#include "passes/cost/CostModel.h"
#include "passes/recompute/BlockGraph.h"
#include "passes/recompute/ForwardPass.h"

namespace gpuc {

/// The values that may be dropped are those that `forward` computes, in its order.
BlockGraph modelOf(const ForwardPass &forward, const CostModel &cost);

} // namespace gpuc
