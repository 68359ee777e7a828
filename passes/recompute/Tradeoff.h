//===- Tradeoff.h - What a step takes in memory and in time --------------------===//
#pragma once

#include "passes/cost/CostModel.h"
#include "passes/recompute/StepForward.h"

#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace gpuc {

/// What a plan takes.
struct PlanFigures {
  int64_t peakBytes = 0;         ///< Of its arena.
  double nanoseconds = 0;        ///< That a step is predicted to take.
  int64_t recomputeFlops = 0;    ///< Of a step.
  bool othersTakeAsMuch = false; ///< Of the plan's programs others do: no choice takes less.
};

/// A plan that there is, by what it keeps.
struct TradeoffPoint {
  std::string name; ///< Where what it keeps comes from: a policy, say.
  StepChoice choice;
  int64_t recomputedValues = 0, recomputedBytes = 0; ///< Of values that are not.
  PlanFigures figures;
  /// Of a step with any other choice whose peak is estimated no higher: no less, as far as that estimate
  /// goes.
  double leastNanoseconds = 0;
};

/// A training step, null if nothing is trained; and, if kernels of its backward pass write again what the
/// forward pass has written, one in which what was written first is read (base/WrittenAgain.h).
struct StepForms {
  const StepForward *step, *readingFirst = nullptr;
};

/// Makes the plan of a choice.
using PlanTrial = llvm::function_ref<mlir::FailureOr<PlanFigures>(const StepChoice &choice)>;

/// The plans among those tried that no other betters in both memory and time, by falling memory and rising
/// time, so that the first keeps the most; and that of a policy.
struct Tradeoff {
  std::vector<TradeoffPoint> points;
  size_t ofPolicy = 0; ///< Which of them is the policy's.
};

/// Which plans are tried depends on the step alone, never on how much memory there is: whoever takes the
/// first that fits gets no faster plan for less memory, nor a larger one.
mlir::FailureOr<Tradeoff> exploreTradeoff(const StepForms &forms, const CostModel &cost,
                                          llvm::StringRef policy, PlanTrial tryPlan);

} // namespace gpuc
