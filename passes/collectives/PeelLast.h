//===- PeelLast.h - The last iteration, outside of its loop --------------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// Puts the last iteration of loops behind them where they leave what is summed over ranks, as a loop over
/// microbatches does: gradients are then finished one after another, not all where the loop ends. The
/// commands are the same ones in the same order, on the same bytes but for what lives in one iteration. False
/// if there is no such loop.
bool peelLastIterations(plan::ProgramOp program);

} // namespace gpuc
