//===- Tradeoff.cpp - What a step takes in memory and in time ------------------===//

#include "passes/recompute/Tradeoff.h"

#include "passes/recompute/BlockModel.h"
#include "passes/recompute/Policy.h"
#include "passes/recompute/Selection.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc {

namespace {

/// How often a block runs in a step.
int64_t timesRun(Block &block) {
  int64_t times = 1;
  for (Operation *op = block.getParentOp(); op; op = op->getParentOp())
    if (auto scan = dyn_cast<ir::ScanOp>(op))
      times *= scan.getTripCount();
  return times;
}

/// A block of the step, its values from one number on.
struct SearchedBlock {
  SearchedBlock(BlockGraph blockGraph, int64_t blockTimes, unsigned blockBegin, const llvm::BitVector &little)
      : graph(std::move(blockGraph)), times(blockTimes), begin(blockBegin), selection(graph, in(little)) {}

  llvm::BitVector in(const llvm::BitVector &kept) const {
    llvm::BitVector ofBlock(graph.size());
    for (unsigned value = 0; value < graph.size(); ++value)
      ofBlock[value] = kept[begin + value];
    return ofBlock;
  }

  BlockGraph graph;
  int64_t times;
  unsigned begin;
  Selection selection;
};

class Exploration {
public:
  Exploration(const StepForward &step, PlanTrial tryPlan) : step_(step), tryPlan_(tryPlan) {}

  /// From now on plans have the memory of one slice of the batch.
  void takeSlicesInTurn() { slicesInTurn_ = true; }

  /// Makes a plan, unless one like it was made.
  LogicalResult attempt(std::string name, const llvm::BitVector &kept) {
    StepChoice choice{step_.normalized(kept), slicesInTurn_};
    if (llvm::any_of(points_, [&](const TradeoffPoint &point) { return point.choice == choice; }))
      return success();
    FailureOr<PlanFigures> figures = tryPlan_(choice);
    if (failed(figures))
      return failure();
    // Slices at once take no longer, however the terms of predictions are added up.
    figures->nanoseconds = std::max(figures->nanoseconds, slicesInTurn_ ? fastestAtOnce() : 0);
    int64_t values = 0, bytes = 0;
    for (auto [number, value] : llvm::enumerate(step_.values()))
      if (!choice.kept.test(number)) {
        ++values;
        bytes += ir::sizeInBytes(value.getType());
      }
    points_.push_back({std::move(name), std::move(choice), values, bytes, *figures});
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
    const llvm::BitVector little = valuesKept({CheckpointPolicy::Kind::full, {}}, step_);
    std::vector<std::vector<llvm::BitVector>> selections;
    size_t most = 0;
    for (const ForwardPass &forward : step_.passes()) {
      const unsigned begin = blocks_.empty() ? 0 : blocks_.back().begin + blocks_.back().graph.size();
      blocks_.emplace_back(modelOf(forward, cost), timesRun(forward.block()), begin, little);
      selections.push_back(select(blocks_.back()));
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
    auto rank = [](const TradeoffPoint &point) {
      return std::tuple(point.figures.nanoseconds, point.choice.slicesInTurn, point.figures.peakBytes);
    };
    llvm::stable_sort(points_,
                      [&](const TradeoffPoint &a, const TradeoffPoint &b) { return rank(a) < rank(b); });
    Tradeoff tradeoff;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (TradeoffPoint &point : points_) {
      const bool isBetter = point.figures.peakBytes < least;
      const bool isPolicys = point.name == policy && !point.choice.slicesInTurn;
      least = std::min(least, point.figures.peakBytes);
      if (isPolicys)
        tradeoff.ofPolicy = tradeoff.points.size();
      if (!isBetter && !isPolicys)
        continue;
      point.leastNanoseconds = leastOf(point);
      tradeoff.points.push_back(std::move(point));
    }
    return tradeoff;
  }

private:
  static constexpr int kSteps = 24;

  double fastestAtOnce() const {
    double least = std::numeric_limits<double>::infinity();
    for (const TradeoffPoint &point : points_)
      if (!point.choice.slicesInTurn)
        least = std::min(least, point.figures.nanoseconds);
    return least;
  }

  /// In equal steps from all bytes down to the fewest that are found.
  static std::vector<llvm::BitVector> select(SearchedBlock &block) {
    std::vector<llvm::BitVector> selected;
    const int64_t whole = block.graph.simulate(llvm::BitVector(block.graph.size(), true), 0).peak;
    for (int step = 1; step < kSteps; ++step) {
      Selected best = block.selection.within(whole / kSteps * (kSteps - step));
      if (!best.isFound())
        break;
      selected.push_back(std::move(best.kept));
    }
    selected.push_back(block.selection.least().kept);
    return selected;
  }

  /// What is predicted of the plan, without what its blocks could save by the estimate.
  double leastOf(const TradeoffPoint &point) const {
    double nanoseconds = point.figures.nanoseconds;
    for (const SearchedBlock &block : blocks_) {
      const BlockGraph::Outcome outcome = block.graph.simulate(block.in(point.choice.kept), 0);
      const double atLeast = block.selection.atLeast(outcome.peak);
      nanoseconds -= block.times * std::max(0.0, outcome.nanoseconds - atLeast);
    }
    return nanoseconds;
  }

  const StepForward &step_;
  PlanTrial tryPlan_;
  bool slicesInTurn_ = false;
  std::deque<SearchedBlock> blocks_;
  std::vector<TradeoffPoint> points_;
};

} // namespace

FailureOr<Tradeoff> exploreTradeoff(const StepForward *step, const CostModel &cost, StringRef policy,
                                    PlanTrial tryPlan) {
  if (!step) {
    FailureOr<PlanFigures> figures = tryPlan({});
    if (failed(figures))
      return failure();
    return Tradeoff{{{"none", {}, 0, 0, *figures, figures->nanoseconds}}, 0};
  }
  Exploration exploration(*step, tryPlan);
  // Slices of the batch that lie side by side are the first thing that is taken back.
  if (step->hasSlices()) {
    for (StringRef text : {policy, StringRef("none")})
      if (failed(exploration.attemptPolicy(text)))
        return failure();
    exploration.takeSlicesInTurn();
  }
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
