//===- Tradeoff.cpp - What a step takes in memory and in time ------------------===//

#include "passes/recompute/Tradeoff.h"

#include "passes/recompute/Policy.h"
#include "passes/recompute/Selection.h"

#include "dialects/gpuc/GpucDialect.h"

using namespace mlir;

namespace gpuc {

namespace {

class Exploration {
public:
  Exploration(const StepForward &step, PlanTrial tryPlan) : step_(step), tryPlan_(tryPlan) {}

  /// Makes a plan, unless one like it was made.
  LogicalResult attempt(std::string name, llvm::BitVector kept) {
    kept = step_.normalized(kept);
    if (llvm::any_of(points_, [&](const TradeoffPoint &point) { return point.kept == kept; }))
      return success();
    FailureOr<PlanFigures> figures = tryPlan_(kept);
    if (failed(figures))
      return failure();
    int64_t values = 0, bytes = 0;
    for (auto [number, value] : llvm::enumerate(step_.values()))
      if (!kept.test(number)) {
        ++values;
        bytes += ir::sizeInBytes(value.getType());
      }
    points_.push_back({std::move(name), std::move(kept), values, bytes, *figures});
    return success();
  }

  LogicalResult attemptPolicy(StringRef text) {
    std::string error;
    FailureOr<CheckpointPolicy> policy = CheckpointPolicy::parse(text, step_.function().getContext(), error);
    return failed(policy) ? failure() : attempt(text.str(), valuesKept(*policy, step_));
  }

  /// Each step of the memory, in all blocks at once.
  LogicalResult attemptSelections(const CostModel &cost) {
    // What cutting into segments comes to is where the search ends, from whichever side.
    const llvm::BitVector least = valuesKept({CheckpointPolicy::Kind::full, {}}, step_);
    std::vector<std::vector<llvm::BitVector>> selections;
    size_t most = 0;
    for (unsigned begin = 0; const ForwardPass &forward : step_.passes()) {
      const BlockModel model(forward, cost);
      llvm::BitVector ofBlock(model.size());
      for (unsigned value = 0; value < model.size(); ++value)
        ofBlock[value] = least[begin + value];
      begin += model.size();
      selections.push_back(selectValues(model, std::move(ofBlock), kSteps));
      most = std::max(most, selections.back().size());
    }
    for (size_t number = 0; number < most; ++number) {
      llvm::BitVector kept;
      for (ArrayRef<llvm::BitVector> ofBlock : selections)
        for (unsigned value = 0; value < ofBlock.front().size(); ++value)
          kept.push_back(ofBlock[std::min(number, ofBlock.size() - 1)].test(value));
      if (failed(attempt("selection " + std::to_string(number + 1), std::move(kept))))
        return failure();
    }
    return success();
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
  static constexpr int kSteps = 24;

  const StepForward &step_;
  PlanTrial tryPlan_;
  std::vector<TradeoffPoint> points_;
};

} // namespace

FailureOr<Tradeoff> exploreTradeoff(const StepForward *step, const CostModel &cost, StringRef policy,
                                    PlanTrial tryPlan) {
  if (!step) {
    FailureOr<PlanFigures> figures = tryPlan({});
    if (failed(figures))
      return failure();
    return Tradeoff{{{"none", {}, 0, 0, *figures}}, 0};
  }
  Exploration exploration(*step, tryPlan);
  // The user's comes first: what is equal has its name.
  for (StringRef text : {policy, StringRef("none"), StringRef("save=matmul,conv2d,attention"),
                         StringRef("sqrt"), StringRef("full")})
    if (failed(exploration.attemptPolicy(text)))
      return failure();
  if (failed(exploration.attemptSelections(cost)))
    return failure();
  return std::move(exploration).front(policy);
}

} // namespace gpuc
