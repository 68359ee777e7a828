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

  /// The bytes that it takes, by the estimate, with everything kept.
  int64_t keepingAll() const { return graph.simulate(llvm::BitVector(graph.size(), true), 0).peak; }

  BlockGraph graph;
  int64_t times;
  unsigned begin;
  Selection selection;
};

class Exploration {
public:
  Exploration(const StepForms &forms, PlanTrial tryPlan)
      : forms_{{*forms.step, /*readsFirst=*/false}}, tryPlan_(tryPlan) {
    if (forms.readingFirst)
      forms_.push_back({*forms.readingFirst, /*readsFirst=*/true});
  }

  /// From now on plans have the memory of one slice of the batch.
  void takeSlicesInTurn() { slicesInTurn_ = true; }

  LogicalResult attemptPolicy(StringRef text) {
    std::string error;
    FailureOr<CheckpointPolicy> policy =
        CheckpointPolicy::parse(text, forms_.front().step.function().getContext(), error);
    if (failed(policy))
      return failure();
    const Form &form = policy->dropsWholes() ? forms_.back() : forms_.front();
    return attempt(text.str(), form, valuesKept(*policy, form.step));
  }

  LogicalResult attemptSelections(const CostModel &cost) {
    for (Form &form : forms_)
      if (failed(attemptSelections(form, cost)))
        return failure();
    return success();
  }

  /// Those that none betters, and that of the policy.
  Tradeoff front(StringRef policy) && {
    auto rank = [](const TradeoffPoint &point) {
      return std::tuple(point.figures.nanoseconds, point.choice.slicesInTurn, point.figures.peakBytes);
    };
    llvm::stable_sort(points_,
                      [&](const TradeoffPoint &a, const TradeoffPoint &b) { return rank(a) < rank(b); });
    for (TradeoffPoint &point : points_)
      point.leastNanoseconds = leastOf(point);
    Tradeoff tradeoff;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const TradeoffPoint &point : points_) {
      const bool isBetter = point.figures.peakBytes < least;
      const bool isPolicys = point.name == policy && !point.choice.slicesInTurn;
      least = std::min(least, point.figures.peakBytes);
      if (isPolicys)
        tradeoff.ofPolicy = tradeoff.points.size();
      if (!isBetter && !isPolicys)
        continue;
      tradeoff.points.push_back(point);
      tradeoff.points.back().leastNanoseconds = std::min(point.leastNanoseconds, leastOfOtherForm(point));
    }
    return tradeoff;
  }

private:
  static constexpr int kSteps = 24;

  /// One of the forms of the step, with its blocks once they are searched.
  struct Form {
    const StepForward &step;
    bool readsFirst;
    std::deque<SearchedBlock> blocks = {};
  };

  /// Makes a plan, unless one like it was made.
  LogicalResult attempt(std::string name, const Form &form, const llvm::BitVector &kept) {
    StepChoice choice{form.step.normalized(kept), slicesInTurn_, form.readsFirst};
    if (llvm::any_of(points_, [&](const TradeoffPoint &point) { return point.choice == choice; }))
      return success();
    FailureOr<PlanFigures> figures = tryPlan_(choice);
    if (failed(figures))
      return failure();
    // Slices at once take no longer, however the terms of predictions are added up.
    figures->nanoseconds = std::max(figures->nanoseconds, slicesInTurn_ ? fastestAtOnce() : 0);
    int64_t values = 0, bytes = 0;
    for (auto [number, value] : llvm::enumerate(form.step.values()))
      if (!choice.kept.test(number)) {
        ++values;
        bytes += ir::sizeInBytes(value.getType());
      }
    points_.push_back({std::move(name), std::move(choice), values, bytes, *figures});
    return success();
  }

  /// Each step of the memory, in all blocks at once.
  LogicalResult attemptSelections(Form &form, const CostModel &cost) {
    // What cutting into segments comes to is where the search ends, from whichever side.
    const llvm::BitVector little = valuesKept({CheckpointPolicy::Kind::full, {}}, form.step);
    std::deque<SearchedBlock> &blocks = form.blocks;
    std::vector<std::vector<llvm::BitVector>> selections;
    size_t most = 0;
    for (const ForwardPass &forward : form.step.passes()) {
      const unsigned begin = blocks.empty() ? 0 : blocks.back().begin + blocks.back().graph.size();
      blocks.emplace_back(modelOf(forward, cost), timesRun(forward.block()), begin, little);
      // The other form is for less than what this one takes with everything kept.
      const SearchedBlock &first = forms_.front().blocks[blocks.size() - 1];
      selections.push_back(select(blocks.back(), first.keepingAll()));
      most = std::max(most, selections.back().size());
    }
    for (size_t number = 0; number < most; ++number) {
      llvm::BitVector kept;
      for (ArrayRef<llvm::BitVector> ofBlock : selections)
        for (unsigned value = 0; value < ofBlock.front().size(); ++value)
          kept.push_back(ofBlock[std::min(number, ofBlock.size() - 1)].test(value));
      if (failed(attempt("selection " + std::to_string(number + 1), form, kept)))
        return failure();
    }
    return success();
  }

  double fastestAtOnce() const {
    double least = std::numeric_limits<double>::infinity();
    for (const TradeoffPoint &point : points_)
      if (!point.choice.slicesInTurn)
        least = std::min(least, point.figures.nanoseconds);
    return least;
  }

  /// In equal steps from so many bytes down to the fewest that are found.
  static std::vector<llvm::BitVector> select(SearchedBlock &block, int64_t whole) {
    std::vector<llvm::BitVector> selected;
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
    for (const SearchedBlock &block : forms_[point.choice.readsFirstWritten].blocks) {
      const BlockGraph::Outcome outcome = block.graph.simulate(block.in(point.choice.kept), 0);
      const double atLeast = block.selection.atLeast(outcome.peak);
      nanoseconds -= block.times * std::max(0.0, outcome.nanoseconds - atLeast);
    }
    return nanoseconds;
  }

  /// The least of the step's other form: no less than that of any of its plans that take as many bytes or
  /// more.
  double leastOfOtherForm(const TradeoffPoint &point) const {
    std::optional<double> least;
    for (const TradeoffPoint &other : points_)
      if (other.choice.readsFirstWritten != point.choice.readsFirstWritten &&
          other.figures.peakBytes >= point.figures.peakBytes)
        least = std::max(least.value_or(0), other.leastNanoseconds);
    return least.value_or(point.leastNanoseconds);
  }

  std::deque<Form> forms_;
  PlanTrial tryPlan_;
  bool slicesInTurn_ = false;
  std::vector<TradeoffPoint> points_;
};

} // namespace

FailureOr<Tradeoff> exploreTradeoff(const StepForms &forms, const CostModel &cost, StringRef policy,
                                    PlanTrial tryPlan) {
  if (!forms.step) {
    FailureOr<PlanFigures> figures = tryPlan({});
    if (failed(figures))
      return failure();
    return Tradeoff{{{"none", {}, 0, 0, *figures, figures->nanoseconds}}, 0};
  }
  Exploration exploration(forms, tryPlan);
  // Slices of the batch that lie side by side are the first thing that is taken back.
  if (forms.step->hasSlices()) {
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
