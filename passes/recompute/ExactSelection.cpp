//===- ExactSelection.cpp - The least time within so many bytes, by branch and bound ===//

#include "passes/recompute/ExactSelection.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace gpuc {
namespace {

using Choice = LeastTime::Choice;

/// What is better by less than this is not looked for.
constexpr double kTolerance = 0.005;

/// In front of which commands ops run again, by ops; -1: they do not.
class Copies {
public:
  /// If the values that are open yet are `ofOpen`.
  Copies(const BlockGraph &graph, llvm::ArrayRef<Choice> choices, Choice ofOpen)
      : graph_(graph), choices_(choices), ofOpen_(ofOpen), before_(graph.ops().size(), -1) {
    for (auto [time, op] : llvm::enumerate(graph.ops()))
      if (op.backward)
        copyReads(op, time);
  }

  int64_t before(unsigned op) const { return before_[op]; }

private:
  void copyReads(const BlockGraph::Op &op, int64_t time) {
    for (unsigned value : op.reads)
      if (value < graph_.size() &&
          (choices_[value] == Choice::open ? ofOpen_ : choices_[value]) == Choice::dropped)
        copy(graph_.producer(value), time);
  }

  void copy(unsigned op, int64_t time) {
    if (before_[op] >= 0)
      return;
    before_[op] = time;
    copyReads(graph_.ops()[op], time);
  }

  const BlockGraph &graph_;
  llvm::ArrayRef<Choice> choices_;
  const Choice ofOpen_;
  std::vector<int64_t> before_;
};

/// What lives while each command runs the first time, whatever becomes of the values that are open yet. Those
/// count as weightless in their gaps. If one is dropped, more may run again, and earlier: so copies live from
/// when they come if all open ones are kept, and what they read is needed until they come if all are dropped.
class LiveInAnyCase {
public:
  LiveInAnyCase(const BlockGraph &graph, const Gaps &gaps, llvm::ArrayRef<Choice> choices)
      : graph_(graph), gaps_(gaps), choices_(choices), change_(graph.ops().size() + 1),
        copies_(graph, choices, Choice::kept), readUntil_(graph.size(), -1) {
    const Copies earliest(graph, choices, Choice::dropped);
    for (auto [number, op] : llvm::enumerate(graph.ops()))
      if (runsAgain(number))
        for (unsigned value : op.reads)
          if (value < graph.size()) // not while the command runs before which the copy stands
            readUntil_[value] = std::max(readUntil_[value], earliest.before(number));
    for (unsigned value = 0; value < graph.size(); ++value)
      if (choices[value] != Choice::open)
        addGap(value);
  }

  bool isWithin(int64_t limit) const {
    int64_t live = 0;
    for (unsigned time = 0; time < graph_.ops().size(); ++time) {
      live += change_[time];
      if (live + gaps_.fixed(time) > limit)
        return false;
    }
    return true;
  }

  bool runsAgain(unsigned op) const { return copies_.before(op) >= 0; }
  /// Whether an op that runs again reads it.
  bool isReadAgain(unsigned value) const { return readUntil_[value] >= 0; }

private:
  void addGap(unsigned value) {
    const Gaps::Gap &gap = gaps_.of(value);
    const bool isKept = choices_[value] == Choice::kept;
    const int64_t begin = isKept ? int64_t(gap.after) + 1 : copies_.before(graph_.producer(value));
    if (begin < 0)
      return;
    const int64_t bytes = isKept ? graph_.bytes(value) : graph_.bytesAgain(value);
    if (!graph_.isResidual(value))
      return add(bytes, begin, readUntil_[value]);
    add(bytes, begin, gap.until);
    add(bytes, std::max<int64_t>(begin, int64_t(gap.last) + 1), readUntil_[value]);
  }

  void add(int64_t bytes, int64_t begin, int64_t end) {
    if (begin >= end)
      return;
    change_[begin] += bytes;
    change_[end] -= bytes;
  }

  const BlockGraph &graph_;
  const Gaps &gaps_;
  llvm::ArrayRef<Choice> choices_;
  std::vector<int64_t> change_;
  const Copies copies_;
  std::vector<int64_t> readUntil_; ///< By values: in front of which command the last of those reads them.
};

class BranchAndBound {
public:
  BranchAndBound(const BlockGraph &graph, const LeastTime &least, const LeastTime::Priced &priced,
                 int64_t limit, Selected best, int64_t effort)
      : graph_(graph), least_(least), prices_(priced.prices), limit_(limit), best_(std::move(best)),
        effort_(effort), choices_(graph.size(), Choice::open) {}

  Selected search(double atLeast) && {
    visit(atLeast);
    best_.atLeast = std::max(atLeast, std::min(proven_, best_.nanoseconds));
    return std::move(best_);
  }

private:
  bool isGoodEnough(double atLeast) const { return atLeast * (1 + kTolerance) >= best_.nanoseconds; }

  /// Nothing better than so much is to be found where the search turns back.
  void giveUp(double atLeast) { proven_ = std::min(proven_, atLeast); }

  void visit(double atLeast) {
    if (effort_ <= 0 || isGoodEnough(atLeast))
      return giveUp(atLeast);
    effort_ -= graph_.ops().size();
    const LiveInAnyCase live(graph_, least_.gaps(), choices_);
    if (!live.isWithin(limit_))
      return;
    const LeastTime::Bound bound = least_.at(prices_, limit_, choices_);
    effort_ -= bound.effort;
    atLeast = std::max(atLeast, bound.nanoseconds);
    if (isGoodEnough(atLeast))
      return giveUp(atLeast);
    llvm::BitVector crossing(graph_.size());
    const BlockGraph::Outcome outcome = graph_.simulate(bound.kept, limit_, &crossing);
    effort_ -= outcome.commands;
    if (outcome.excess == 0 && outcome.nanoseconds < best_.nanoseconds) {
      best_.kept = bound.kept;
      best_.nanoseconds = outcome.nanoseconds;
      if (isGoodEnough(atLeast))
        return giveUp(atLeast);
    }
    const std::optional<unsigned> value = toDecide(live, outcome.excess > 0 ? &crossing : nullptr);
    if (!value)
      return; // what the bound comes from is all that is left
    const Choice first = bound.kept.test(*value) ? Choice::kept : Choice::dropped;
    for (Choice choice : {first, first == Choice::kept ? Choice::dropped : Choice::kept}) {
      choices_[*value] = choice;
      visit(atLeast);
    }
    choices_[*value] = Choice::open;
  }

  /// Of what lives where too much does, if there is such, the value on which the most hangs.
  std::optional<unsigned> toDecide(const LiveInAnyCase &live, const llvm::BitVector *crossing) const {
    std::optional<unsigned> best;
    std::pair<bool, double> mostWorth;
    for (unsigned value = 0; value < graph_.size(); ++value) {
      if (choices_[value] != Choice::open || !(graph_.isResidual(value) || live.isReadAgain(value)))
        continue;
      const bool again = live.runsAgain(graph_.producer(value));
      const std::pair worth(crossing && crossing->test(value),
                            std::min(again ? 0 : graph_.nanoseconds(value), price(value)));
      if (!best || worth > mostWorth)
        std::tie(best, mostWorth) = std::pair(value, worth);
    }
    return best;
  }

  double price(unsigned value) const {
    double sum = 0;
    for (auto [time, price] : prices_)
      if (least_.gaps().of(value).holds(time))
        sum += price;
    return sum * graph_.bytes(value);
  }

  const BlockGraph &graph_;
  const LeastTime &least_;
  const LeastTime::Prices prices_;
  const int64_t limit_;
  Selected best_;
  double proven_ = std::numeric_limits<double>::infinity();
  int64_t effort_;
  std::vector<Choice> choices_;
};

} // namespace

Selected selectExactly(const BlockGraph &graph, const LeastTime &least, const LeastTime::Priced &priced,
                       int64_t limit, Selected best, int64_t effort) {
  return BranchAndBound(graph, least, priced, limit, std::move(best), effort).search(priced.nanoseconds);
}

} // namespace gpuc
