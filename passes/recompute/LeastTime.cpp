//===- LeastTime.cpp - What a limit on memory costs at the least ----------------===//

#include "passes/recompute/LeastTime.h"

#include "passes/base/StableSort.h"
#include "runtime/base/min_cut.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

namespace gpuc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Among so many commands the tightest are looked for.
constexpr unsigned kEstimated = 128;

} // namespace

LeastTime::LeastTime(const BlockGraph &graph) : graph_(graph), gaps_(graph), needs_(graph.size()) {
  for (const BlockGraph::Op &op : graph.ops())
    if (graph.canRunAgain(op))
      total_ += op.nanoseconds;
  findNeeds();
  for (unsigned value = 0; value < graph.size(); ++value)
    if (graph.isResidual(value))
      cheapestFirst_.push_back(value);
  auto worth = [&](unsigned value) { return graph.nanoseconds(value) / (1 + graph.bytes(value)); };
  stableSort(cheapestFirst_, [&](unsigned a, unsigned b) { return worth(a) < worth(b); });
}

/// By ops: for no command before it could the op run again.
std::vector<unsigned> LeastTime::firstDemands() const {
  llvm::ArrayRef<BlockGraph::Op> ops = graph_.ops();
  std::vector<unsigned> ofValues(graph_.size()), ofOps(ops.size(), ops.size());
  for (unsigned value = 0; value < graph_.size(); ++value)
    ofValues[value] = gaps_.of(value).first;
  for (unsigned number = ops.size(); number-- > 0;) {
    if (!graph_.canRunAgain(ops[number]))
      continue;
    for (unsigned value : ops[number].writes)
      ofOps[number] = std::min(ofOps[number], ofValues[value]);
    for (unsigned value : ops[number].reads)
      if (value < graph_.size())
        ofValues[value] = std::min(ofValues[value], ofOps[number]);
  }
  return ofOps;
}

void LeastTime::findNeeds() {
  const std::vector<unsigned> demands = firstDemands();
  for (auto [number, op] : llvm::enumerate(graph_.ops()))
    if (graph_.canRunAgain(op))
      for (unsigned value : op.reads)
        if (value < graph_.size() && !graph_.isResidual(value))
          needs_[value].push_back({static_cast<unsigned>(number), demands[number]});
  for (auto &needs : needs_)
    stableSort(needs, [](const Need &a, const Need &b) { return a.until < b.until; });
}

//===----------------------------------------------------------------------===//
// The relaxation
//===----------------------------------------------------------------------===//

/// The relaxed problem for some prices, as a cut: labelled is what runs again, and what is needed.
class LeastTime::Cut {
public:
  Cut(const LeastTime &of, const Prices &prices, Choices choices)
      : of_(of), graph_(of.graph_), choices_(choices), sums_(graph_.ops().size() + 1),
        scale_(std::ldexp(1, 37 - std::ilogb(1 + of.total_))), cut_(numberNodes()) {
    for (auto [time, price] : prices)
      sums_[time + 1] += price;
    for (size_t time = 0; time < graph_.ops().size(); ++time)
      sums_[time + 1] += sums_[time];
    for (auto [number, op] : llvm::enumerate(graph_.ops()))
      if (graph_.canRunAgain(op))
        addCosts(nodes_[number], 0, scaled(op.nanoseconds));
    for (unsigned value = 0; value < graph_.size(); ++value)
      if (graph_.isResidual(value))
        addResidual(value);
      else
        addNeeded(value);
  }

  Bound solve() {
    labels_ = cut_.solve();
    Bound bound;
    bound.nanoseconds = (always_ + costs()) / scale_;
    bound.effort = labels_.size() + demands_.size();
    bound.kept.resize(graph_.size());
    std::vector<double> change(graph_.ops().size() + 1);
    for (unsigned value = 0; value < graph_.size(); ++value) {
      const bool again = labels_[nodes_[graph_.producer(value)]];
      if (choice(value) == Choice::dropped || (choice(value) == Choice::open && again))
        continue;
      bound.kept.set(value);
      const unsigned after = of_.gaps_.of(value).after, until = isNeededUntil(value);
      if (until > after + 1) {
        change[after + 1] += graph_.bytes(value);
        change[until] -= graph_.bytes(value);
      }
    }
    for (size_t time = 1; time < change.size(); ++time)
      change[time] += change[time - 1];
    change.pop_back();
    bound.use = std::move(change);
    return bound;
  }

private:
  static constexpr int64_t kMost = int64_t(1) << 39; ///< More than all that could run again, which is 2^38.

  struct Demand {
    size_t from, to;
    int64_t weight;
  };

  size_t numberNodes() {
    size_t count = 0;
    nodes_.resize(graph_.ops().size());
    for (auto [number, op] : llvm::enumerate(graph_.ops()))
      if (graph_.canRunAgain(op))
        nodes_[number] = count++;
    for (auto &needs : of_.needs_) {
      firstNeed_.push_back(count);
      count += needs.size();
    }
    costs_.resize(count);
    return count;
  }

  Choice choice(unsigned value) const { return choices_.empty() ? Choice::open : choices_[value]; }

  /// Rounded down, so that a bound stays one.
  int64_t scaled(double nanoseconds) const {
    return static_cast<int64_t>(std::min(nanoseconds * scale_, double(kMost)));
  }

  int64_t price(unsigned value, unsigned after, unsigned until) const {
    return until > after + 1 ? scaled(graph_.bytes(value) * (sums_[until] - sums_[after + 1])) : 0;
  }

  void addCosts(size_t node, int64_t unlabelled, int64_t labelled) {
    cut_.addCosts(node, unlabelled, labelled);
    costs_[node].first += unlabelled;
    costs_[node].second += labelled;
  }

  void addDemand(size_t from, size_t to, int64_t weight) {
    cut_.addDemand(from, to, weight);
    demands_.push_back({from, to, weight});
  }

  void addResidual(unsigned value) {
    const Gaps::Gap &gap = of_.gaps_.of(value);
    const int64_t kept = price(value, gap.after, gap.until);
    if (choice(value) == Choice::kept)
      always_ += kept;
    else
      addCosts(nodes_[graph_.producer(value)], choice(value) == Choice::dropped ? kMost : kept, 0);
  }

  /// Each of those that may need it has a node, that demands the one before: it pays what it needs beyond
  /// that.
  void addNeeded(unsigned value) {
    const size_t producer = nodes_[graph_.producer(value)];
    unsigned paid = of_.gaps_.of(value).after + 1;
    for (auto [number, need] : llvm::enumerate(of_.needs_[value])) {
      const size_t node = firstNeed_[value] + number;
      addDemand(nodes_[need.op], node, kMost);
      if (number > 0)
        addDemand(node, node - 1, kMost);
      const int64_t kept = need.until > paid ? price(value, paid - 1, need.until) : 0;
      paid = std::max(paid, need.until);
      if (choice(value) == Choice::kept)
        addCosts(node, 0, kept);
      else
        addDemand(node, producer, choice(value) == Choice::dropped ? kMost : kept);
    }
  }

  double costs() const {
    double sum = 0;
    for (size_t node = 0; node < labels_.size(); ++node)
      sum += labels_[node] ? costs_[node].second : costs_[node].first;
    for (const Demand &demand : demands_)
      sum += labels_[demand.from] && !labels_[demand.to] ? demand.weight : 0;
    return sum;
  }

  unsigned isNeededUntil(unsigned value) const {
    if (graph_.isResidual(value))
      return of_.gaps_.of(value).until;
    unsigned until = 0;
    for (auto [number, need] : llvm::enumerate(of_.needs_[value]))
      if (labels_[nodes_[need.op]])
        until = need.until;
    return until;
  }

  const LeastTime &of_;
  const BlockGraph &graph_;
  Choices choices_;
  std::vector<double> sums_; ///< [t]: of the prices of commands before t.
  double scale_;
  std::vector<size_t> nodes_, firstNeed_; ///< By ops, by values.
  std::vector<std::pair<int64_t, int64_t>> costs_;
  MinCut cut_;
  std::vector<Demand> demands_;
  double always_ = 0;
  std::vector<bool> labels_;
};

LeastTime::Bound LeastTime::at(const Prices &prices, int64_t limit, Choices choices) const {
  Bound bound = Cut(*this, prices, choices).solve();
  for (auto [time, price] : prices)
    bound.nanoseconds += price * (gaps_.fixed(time) - limit);
  return bound;
}

//===----------------------------------------------------------------------===//
// Prices
//===----------------------------------------------------------------------===//

/// What a command's limit costs if each value could be dropped in part, and all that is read were there.
double LeastTime::estimate(unsigned time, int64_t limit) const {
  auto isInGap = [&](unsigned value) { return gaps_.of(value).after < time && time < gaps_.of(value).until; };
  double above = gaps_.fixed(time) - limit, nanoseconds = 0;
  for (unsigned value : cheapestFirst_)
    above += isInGap(value) ? graph_.bytes(value) : 0;
  for (unsigned value : cheapestFirst_) {
    if (above <= 0)
      break;
    if (!isInGap(value) || graph_.bytes(value) == 0)
      continue;
    nanoseconds += graph_.nanoseconds(value) * std::min(1.0, above / graph_.bytes(value));
    above -= graph_.bytes(value);
  }
  return nanoseconds;
}

std::vector<unsigned> LeastTime::tightest(int64_t limit, unsigned most) const {
  std::vector<std::pair<double, unsigned>> found;
  const unsigned stride = 1 + graph_.ops().size() / kEstimated;
  for (unsigned time = 0; time < graph_.ops().size(); time += stride)
    if (double nanoseconds = estimate(time, limit); nanoseconds > 0)
      found.push_back({-nanoseconds, time});
  llvm::sort(found);
  std::vector<unsigned> times;
  for (auto [nanoseconds, time] : found)
    if (times.size() < most)
      times.push_back(time);
  return times;
}

/// The bound as a function of one price is concave, and each cut gives a line that it lies below: of two, one
/// that rises and one that falls, the next price is where they meet.
LeastTime::Priced LeastTime::bestPrice(unsigned time, int64_t limit) const {
  Priced best;
  const double room = limit - gaps_.fixed(time);
  struct Line {
    double at = 0, slope = 0; ///< At a price of 0.
  };
  auto ask = [&](double price) {
    const Bound bound = at({{time, price}}, limit);
    best.effort += bound.effort;
    if (bound.nanoseconds > best.nanoseconds || best.prices.empty()) {
      best.nanoseconds = bound.nanoseconds;
      best.prices = {{time, price}};
      best.kept = bound.kept;
    }
    const double slope = bound.use[time] - room;
    return Line{bound.nanoseconds - price * slope, slope};
  };
  Line rising = ask(0);
  if (rising.slope <= 0)
    return best;
  // For a price at which each byte is worth all of the time, nothing is kept that need not be.
  Line falling = ask(2 * (1 + total_));
  if (falling.slope > 0)
    return best.nanoseconds = kInfinity, best;
  constexpr int kMostCuts = 60;
  for (int cuts = 0; cuts < kMostCuts; ++cuts) {
    const double price = (falling.at - rising.at) / (rising.slope - falling.slope);
    const double meet = rising.at + price * rising.slope;
    const Line line = ask(price);
    if (line.at + price * line.slope >= meet - 1e-9 * (1 + total_))
      break;
    (line.slope > 0 ? rising : falling) = line;
  }
  return best;
}

LeastTime::Priced LeastTime::within(int64_t limit, unsigned commands) const {
  Priced best;
  if (gaps_.mostFixed() > limit)
    best.nanoseconds = kInfinity;
  best.kept.resize(graph_.size(), true);
  for (unsigned time : tightest(limit, commands)) {
    Priced priced = bestPrice(time, limit);
    priced.effort += best.effort;
    if (priced.nanoseconds > best.nanoseconds)
      best = std::move(priced);
    else
      best.effort = priced.effort;
  }
  return best;
}

LeastTime::Priced LeastTime::improved(Priced best, int64_t limit, double reached, int steps) const {
  if (best.prices.empty())
    return best;
  std::vector<double> prices(graph_.ops().size());
  for (auto [time, price] : best.prices)
    prices[time] = price;
  double boldness = 1;
  for (int step = 0, idle = 0; step < steps && best.nanoseconds < reached; ++step) {
    Prices asked;
    for (unsigned time = 0; time < prices.size(); ++time)
      if (prices[time] > 0)
        asked.push_back({time, prices[time]});
    Bound bound = at(asked, limit);
    best.effort += bound.effort;
    if (bound.nanoseconds > best.nanoseconds) {
      best.nanoseconds = bound.nanoseconds;
      best.prices = std::move(asked);
      best.kept = bound.kept;
      idle = 0;
    } else if (++idle % 5 == 0) {
      boldness /= 2;
    }
    double square = 0;
    for (unsigned time = 0; time < prices.size(); ++time) {
      bound.use[time] += gaps_.fixed(time) - limit; // by how much it is exceeded
      if (prices[time] > 0 || bound.use[time] > 0)
        square += bound.use[time] * bound.use[time];
    }
    if (square == 0)
      break;
    const double stride = boldness * (reached - bound.nanoseconds) / square;
    for (unsigned time = 0; time < prices.size(); ++time)
      prices[time] = std::max(0.0, prices[time] + stride * bound.use[time]);
  }
  return best;
}

} // namespace gpuc
