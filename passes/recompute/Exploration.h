//===- Exploration.h - The plans that trade a step's time for memory ------------===//
#pragma once

#include "passes/cost/CostModel.h"
#include "passes/recompute/Tradeoff.h"

namespace gpuc {

/// A training step, null if nothing is trained; and, if kernels of its backward pass write again what the
/// forward pass has written, one in which what was written first is read (base/WrittenAgain.h).
struct StepForms {
  const StepForward *step, *readingFirst = nullptr;
};

/// Which plans are tried depends on the step alone, never on how much memory there is: whoever takes the
/// fastest that fits gets no faster plan for less memory, nor a larger one. `tryPlan` need not place.
mlir::FailureOr<Tradeoff> exploreTradeoff(const StepForms &forms, const CostModel &cost,
                                          llvm::StringRef policy, PlanTrial tryPlan, PlanTrial place);

} // namespace gpuc
