//===- Tradeoff.cpp - What a step takes in memory and in time ------------------===//

#include "passes/recompute/Tradeoff.h"

#include "passes/recompute/Policy.h"

using namespace mlir;

namespace gpuc {

namespace {

class Exploration {
public:
  Exploration(const StepForward &step, PlanTrial tryPlan) : step_(step), tryPlan_(tryPlan) {}

  /// Makes a plan, unless one like it was made.
  LogicalResult attempt(std::string name, llvm::BitVector kept) {
    if (llvm::any_of(points_, [&](const TradeoffPoint &point) { return point.kept == kept; }))
      return success();
    FailureOr<PlanFigures> figures = tryPlan_(kept);
    if (succeeded(figures))
      points_.push_back({std::move(name), std::move(kept), *figures});
    return success(succeeded(figures));
  }

  LogicalResult attemptPolicy(StringRef text) {
    std::string error;
    FailureOr<CheckpointPolicy> policy = CheckpointPolicy::parse(text, step_.context(), error);
    return success(succeeded(policy) && succeeded(attempt(text.str(), valuesKept(*policy, step_))));
  }

  /// Those that none betters, and that of the policy.
  Tradeoff front(StringRef policy) && {
    llvm::stable_sort(points_, [](const TradeoffPoint &a, const TradeoffPoint &b) {
      return std::pair(a.figures.nanoseconds, a.figures.peakBytes) <
             std::pair(b.figures.nanoseconds, b.figures.peakBytes);
    });
    Tradeoff tradeoff;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (TradeoffPoint &point : points_) {
      const bool isBetter = point.figures.peakBytes < least, isPolicys = point.name == policy;
      least = std::min(least, point.figures.peakBytes);
      if (isPolicys)
        tradeoff.ofPolicy = tradeoff.points.size();
      if (isBetter || isPolicys)
        tradeoff.points.push_back(std::move(point));
    }
    return tradeoff;
  }

private:
  const StepForward &step_;
  PlanTrial tryPlan_;
  std::vector<TradeoffPoint> points_;
};

} // namespace

FailureOr<Tradeoff> exploreTradeoff(const StepForward *step, StringRef policy, PlanTrial tryPlan) {
  if (!step) {
    FailureOr<PlanFigures> figures = tryPlan({});
    if (failed(figures))
      return failure();
    return Tradeoff{{{"none", {}, *figures}}, 0};
  }
  Exploration exploration(*step, tryPlan);
  // The user's comes first: what is equal has its name.
  for (StringRef text : {policy, StringRef("none"), StringRef("save=matmul,conv2d,attention"),
                         StringRef("sqrt"), StringRef("full")})
    if (failed(exploration.attemptPolicy(text)))
      return failure();
  return std::move(exploration).front(policy);
}

} // namespace gpuc
