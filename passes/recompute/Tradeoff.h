//===- Tradeoff.h - What a step takes in memory and in time --------------------===//
#pragma once

#include "passes/recompute/StepForward.h"

#include "mlir/Support/LLVM.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuc {

/// What a plan takes.
struct PlanFigures {
  int64_t peakBytes = 0;         ///< Of its arena; as long as it is not placed, what no placement goes below.
  double nanoseconds = 0;        ///< That a step is predicted to take.
  int64_t recomputeFlops = 0;    ///< Of a step.
  bool othersTakeAsMuch = false; ///< Of the plan's programs others do: no choice takes less.
  bool isPlaced = true;
};

/// A plan that there is, by what it keeps.
struct TradeoffPoint {
  std::string name;       ///< Where what it keeps comes from: a policy, say.
  bool isPolicys = false; ///< That which was asked for if memory is no matter.
  StepChoice choice;
  int64_t recomputedValues = 0, recomputedBytes = 0; ///< Of values that are not.
  PlanFigures figures;
  /// Of a step with any other choice whose peak is estimated no higher: no less, as far as that estimate
  /// goes.
  double leastNanoseconds = 0;
};

/// Makes the plan of a choice.
using PlanTrial = std::function<mlir::FailureOr<PlanFigures>(const StepChoice &choice)>;

/// The plans that were tried. Where their buffers lie takes longer to find than all else of them, so it is
/// found for those alone on which an answer hangs.
class Tradeoff {
public:
  /// `place` makes the plan of a choice as far as its placement.
  Tradeoff(std::vector<TradeoffPoint> points, PlanTrial place);

  /// The fastest that takes at most so many bytes, of equally fast ones the one that takes the least; none
  /// if there is none.
  mlir::FailureOr<std::optional<TradeoffPoint>> fastestWithin(int64_t bytes);

  /// What takes the fewest bytes, and the fastest of all.
  mlir::FailureOr<TradeoffPoint> least();
  mlir::FailureOr<TradeoffPoint> fastest();

  /// Those that no other betters in both memory and time, by falling memory and rising time, so that the
  /// first keeps the most; and that of the policy, which may be worse than another in both.
  mlir::FailureOr<std::vector<TradeoffPoint>> curve();

private:
  mlir::LogicalResult place(TradeoffPoint &point);
  TradeoffPoint withBound(const TradeoffPoint &point) const;

  std::vector<TradeoffPoint> points_; ///< By rising time.
  PlanTrial place_;
};

} // namespace gpuc
