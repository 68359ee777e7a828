//===- Exploration.cpp - The plans that trade a step's time for memory ----------===//

#include "passes/recompute/Exploration.h"

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

/// Memory is gone down in so many equal steps.
constexpr int kSteps = 24;

/// A block of the step, its values from one number on, and what of it is kept as memory falls.
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
  Selected chosen = {};
  bool isAtEnd = false; ///< Nothing was found that takes less.
};

/// The step, in one of its forms, and its search.
class Form {
public:
  Form(const StepForward &step, bool readsFirst) : step_(step), readsFirst_(readsFirst) {}

  const StepForward &step() const { return step_; }
  bool readsFirst() const { return readsFirst_; }
  const std::deque<SearchedBlock> &blocks() const { return blocks_; }

  void begin(const CostModel &cost) {
    // What cutting into segments comes to is where the search ends, from whichever side.
    const llvm::BitVector little = valuesKept({CheckpointPolicy::Kind::full, {}}, step_);
    for (const ForwardPass &forward : step_.passes()) {
      const unsigned begin = blocks_.empty() ? 0 : blocks_.back().begin + blocks_.back().graph.size();
      blocks_.emplace_back(modelOf(forward, cost), timesRun(forward.block()), begin, little);
    }
  }

  /// Goes on to what is kept within these bytes of each block, or to the least that is found.
  void descend(ArrayRef<int64_t> limits) {
    for (auto [block, limit] : llvm::zip_equal(blocks_, limits))
      if (!block.isAtEnd) {
        block.chosen = block.selection.within(limit);
        block.isAtEnd = !block.chosen.isFound();
        if (block.isAtEnd)
          block.chosen = block.selection.least();
      }
  }

  bool isAtEnd() const {
    return llvm::all_of(blocks_, [](const SearchedBlock &block) { return block.isAtEnd; });
  }

  /// What it has come to.
  llvm::BitVector kept() const {
    llvm::BitVector kept;
    for (const SearchedBlock &block : blocks_)
      for (unsigned value = 0; value < block.graph.size(); ++value)
        kept.push_back(block.chosen.kept.test(value));
    return kept;
  }

  /// What that takes to compute again.
  double nanosecondsAgain() const {
    double nanoseconds = 0;
    for (const SearchedBlock &block : blocks_)
      nanoseconds += static_cast<double>(block.times) * block.chosen.nanoseconds;
    return nanoseconds;
  }

  /// What no choice within these bytes of each block takes less than; infinite if there is none.
  double atLeastAgain(ArrayRef<int64_t> limits) const {
    double nanoseconds = 0;
    for (auto [block, limit] : llvm::zip_equal(blocks_, limits))
      nanoseconds += static_cast<double>(block.times) * block.selection.atLeast(limit);
    return nanoseconds;
  }

  /// What all commands take once.
  double nanosecondsOnce() const {
    double nanoseconds = 0;
    for (const SearchedBlock &block : blocks_)
      for (const BlockGraph::Op &op : block.graph.ops())
        nanoseconds += static_cast<double>(block.times) * op.nanoseconds;
    return nanoseconds;
  }

private:
  const StepForward &step_;
  bool readsFirst_;
  std::deque<SearchedBlock> blocks_;
};

class Exploration {
public:
  Exploration(const StepForms &forms, PlanTrial tryPlan) : tryPlan_(std::move(tryPlan)) {
    forms_.emplace_back(*forms.step, /*readsFirst=*/false);
    if (forms.readingFirst)
      forms_.emplace_back(*forms.readingFirst, /*readsFirst=*/true);
  }

  /// From now on plans have the memory of one slice of the batch.
  void takeSlicesInTurn() { slicesInTurn_ = true; }

  LogicalResult attemptPolicy(StringRef text) {
    std::string error;
    FailureOr<CheckpointPolicy> policy =
        CheckpointPolicy::parse(text, forms_.front().step().function().getContext(), error);
    if (failed(policy))
      return failure();
    const Form &form = policy->dropsWholes() ? forms_.back() : forms_.front();
    return attempt(text.str(), form, valuesKept(*policy, form.step()));
  }

  /// From what everything kept takes down to the least, in all blocks at once.
  LogicalResult attemptSelections(const CostModel &cost) {
    for (Form &form : forms_)
      form.begin(cost);
    savedByReadingFirst_ = std::max(0.0, forms_.front().nanosecondsOnce() - forms_.back().nanosecondsOnce());
    const SmallVector<int64_t> whole = llvm::map_to_vector(
        forms_.front().blocks(), [](const SearchedBlock &block) { return block.keepingAll(); });
    for (int step = 1; step <= kSteps; ++step) {
      const size_t before = points_.size();
      const auto limits =
          llvm::map_to_vector(whole, [&](int64_t bytes) { return bytes / kSteps * (kSteps - step); });
      if (failed(attemptSelection("selection " + std::to_string(step), limits)))
        return failure();
      const bool isLeast = llvm::any_of(llvm::drop_begin(points_, before), [](const TradeoffPoint &point) {
        return point.figures.othersTakeAsMuch;
      });
      if (isLeast || llvm::all_of(forms_, [](const Form &form) { return form.isAtEnd(); }))
        break;
    }
    return success();
  }

  /// All that were tried.
  Tradeoff take(StringRef policy, PlanTrial place) && {
    for (TradeoffPoint &point : points_) {
      point.isPolicys = point.name == policy && !point.choice.slicesInTurn;
      point.leastNanoseconds = leastOf(point);
    }
    return Tradeoff(std::move(points_), std::move(place));
  }

private:
  /// Makes a plan, unless one like it was made.
  LogicalResult attempt(std::string name, const Form &form, const llvm::BitVector &kept) {
    StepChoice choice{form.step().normalized(kept), slicesInTurn_, form.readsFirst()};
    if (llvm::any_of(points_, [&](const TradeoffPoint &point) { return point.choice == choice; }))
      return success();
    FailureOr<PlanFigures> figures = tryPlan_(choice);
    if (failed(figures))
      return failure();
    // Slices at once take no longer, however the terms of predictions are added up.
    figures->nanoseconds = std::max(figures->nanoseconds, slicesInTurn_ ? fastestAtOnce() : 0);
    int64_t values = 0, bytes = 0;
    for (auto [number, value] : llvm::enumerate(form.step().values()))
      if (!choice.kept.test(number)) {
        ++values;
        bytes += ir::sizeInBytes(value.getType());
      }
    if (values == 0)
      keepingAll_ = std::min(keepingAll_, figures->nanoseconds);
    points_.push_back({std::move(name), /*isPolicys=*/false, std::move(choice), values, bytes, *figures});
    return success();
  }

  /// In the form that takes less within these bytes, by the estimate: a plan takes as long as a search for
  /// one. Nor is the other form searched where its bound tells that it takes more.
  LogicalResult attemptSelection(const std::string &name, ArrayRef<int64_t> limits) {
    Form &first = forms_.front(), &other = forms_.back();
    bool isFirstTried = !first.isAtEnd(), isOtherTried = forms_.size() > 1 && !other.isAtEnd();
    first.descend(limits);
    if (isOtherTried && !isWorse(other.atLeastAgain(limits) - savedByReadingFirst_, first)) {
      other.descend(limits);
      // How many writes a choice saves the estimate does not know: none, all or something between.
      const double again = other.nanosecondsAgain() - savedByReadingFirst_ / 2;
      isOtherTried = other.isAtEnd() || !isWorse(again, first);
      isFirstTried &= other.isAtEnd() || again >= first.nanosecondsAgain();
    } else {
      isOtherTried = false;
    }
    if (isFirstTried && failed(attempt(name, first, first.kept())))
      return failure();
    return isOtherTried ? attempt(name, other, other.kept()) : success();
  }

  /// Whether the other form takes no less than the first one, within bytes in which both can do.
  static bool isWorse(double again, const Form &first) {
    return std::isfinite(again) && !first.isAtEnd() && again >= first.nanosecondsAgain();
  }

  double fastestAtOnce() const {
    double least = std::numeric_limits<double>::infinity();
    for (const TradeoffPoint &point : points_)
      if (!point.choice.slicesInTurn)
        least = std::min(least, point.figures.nanoseconds);
    return least;
  }

  /// What is predicted of the plan, without what its blocks could save by the estimate, in this form or in
  /// the other one.
  double leastOf(const TradeoffPoint &point) const {
    const Form &form = forms_[point.choice.readsFirstWritten];
    double nanoseconds = point.figures.nanoseconds;
    SmallVector<int64_t> peaks;
    for (const SearchedBlock &block : form.blocks()) {
      const BlockGraph::Outcome outcome = block.graph.simulate(block.in(point.choice.kept), 0);
      const double atLeast = block.selection.atLeast(outcome.peak);
      nanoseconds -= static_cast<double>(block.times) * std::max(0.0, outcome.nanoseconds - atLeast);
      peaks.push_back(outcome.peak);
    }
    if (forms_.size() == 1)
      return nanoseconds;
    const Form &other = forms_[!point.choice.readsFirstWritten];
    const double saved = other.readsFirst() ? savedByReadingFirst_ : 0;
    return std::min(nanoseconds, keepingAll_ + other.atLeastAgain(peaks) - saved);
  }

  std::deque<Form> forms_;
  PlanTrial tryPlan_;
  bool slicesInTurn_ = false;
  std::vector<TradeoffPoint> points_;
  double keepingAll_ = std::numeric_limits<double>::infinity(); ///< What a plan takes that keeps everything.
  double savedByReadingFirst_ = 0;                              ///< At the most.
};

} // namespace

FailureOr<Tradeoff> exploreTradeoff(const StepForms &forms, const CostModel &cost, StringRef policy,
                                    PlanTrial tryPlan, PlanTrial place) {
  if (!forms.step) {
    FailureOr<PlanFigures> figures = tryPlan({});
    if (failed(figures))
      return failure();
    return Tradeoff({{"none", /*isPolicys=*/true, {}, 0, 0, *figures, figures->nanoseconds}},
                    std::move(place));
  }
  Exploration exploration(forms, std::move(tryPlan));
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
  return std::move(exploration).take(policy, std::move(place));
}

} // namespace gpuc
