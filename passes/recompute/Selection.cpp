//===- Selection.cpp - What to keep within so many bytes -----------------------===//
//
// Greedy ways begin where all is kept, where little is, and at the choice from which the bound comes, which
// weighs all values at once. The best of what they end at is bettered by swaps, and, where there are few
// values, by branch and bound.
//
//===----------------------------------------------------------------------===//

#include "passes/recompute/Selection.h"

#include "passes/recompute/GreedySelection.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace gpuc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The most values among which branch and bound finds something in time.
constexpr unsigned kExact = 96;
/// In commands looked at, for each limit.
constexpr int64_t kDropEffort = 3'000'000, kKeepEffort = 3'000'000, kSwapEffort = 1'000'000,
                  kExactEffort = 4'000'000;
constexpr int kPriceSteps = 60;
/// By halves, of the limit.
constexpr int kLimitSteps = 7;

} // namespace

Selection::Selection(const BlockGraph &graph, llvm::BitVector little)
    : graph_(graph), leastTime_(graph), down_(graph.size()), little_(std::move(little)),
      littlePeak_(graph.simulate(little_, 0).peak) {
  for (unsigned value = 0; value < graph.size(); ++value)
    if (graph.isResidual(value))
      down_.set(value); // what else there is only copies would read
}

void Selection::offer(llvm::BitVector kept, int64_t limit, Selected &best) const {
  if (!dropToFit(graph_, kept, limit, kDropEffort))
    return;
  keepWhatFits(graph_, kept, limit, kKeepEffort);
  if (const double nanoseconds = graph_.simulate(kept, limit).nanoseconds; nanoseconds < best.nanoseconds) {
    best.nanoseconds = nanoseconds;
    best.kept = std::move(kept);
  }
}

Selected Selection::within(int64_t limit) {
  LeastTime::Priced priced = leastTime_.within(limit);
  Selected best{llvm::BitVector(graph_.size()), kInfinity, priced.nanoseconds};
  if (priced.nanoseconds == kInfinity)
    return best;
  isDownOpen_ = isDownOpen_ && dropToFit(graph_, down_, limit, kDropEffort);
  if (isDownOpen_) {
    offer(down_, limit, best);
    down_ = best.kept;
  }
  if (littlePeak_ <= limit)
    offer(little_, limit, best);
  offer(pricedToFit(limit, priced.kept), limit, best);
  if (best.nanoseconds < kInfinity && best.nanoseconds > priced.nanoseconds)
    improve(limit, best);
  if (graph_.size() <= kExact && best.nanoseconds > priced.nanoseconds) {
    priced = leastTime_.improved(std::move(priced), limit, std::min(best.nanoseconds, leastTime_.total()),
                                 kPriceSteps);
    best = selectExactly(graph_, leastTime_, priced, limit, std::move(best), kExactEffort);
  }
  proven_.push_back({limit, best.atLeast});
  return best;
}

/// What the bound comes from looks at no copies. With a lower limit there is room for them: the highest is
/// looked for with which all is within the true one.
llvm::BitVector Selection::pricedToFit(int64_t limit, llvm::BitVector kept) const {
  if (graph_.simulate(kept, limit).excess == 0)
    return kept;
  int64_t enough = 0, tooMuch = limit;
  for (int step = 0; step < kLimitSteps; ++step) {
    const int64_t between = enough + (tooMuch - enough) / (step == 0 ? 4 : 2) * (step == 0 ? 3 : 1);
    const LeastTime::Priced priced = leastTime_.within(between, 1);
    const bool fits = priced.nanoseconds < kInfinity && graph_.simulate(priced.kept, limit).excess == 0;
    if (fits)
      kept = priced.kept;
    (fits || priced.nanoseconds == kInfinity ? enough : tooMuch) = between;
  }
  return kept;
}

void Selection::improve(int64_t limit, Selected &best) const {
  swapWithin(graph_, best.kept, limit, kSwapEffort);
  best.nanoseconds = graph_.simulate(best.kept, limit).nanoseconds;
}

Selected Selection::least() {
  llvm::BitVector kept = little_;
  keepWhatFits(graph_, kept, littlePeak_, kKeepEffort);
  if (graph_.simulate(down_, 0).peak < littlePeak_)
    kept = down_;
  const BlockGraph::Outcome outcome = graph_.simulate(kept, 0);
  return {kept, outcome.nanoseconds, atLeast(outcome.peak)};
}

/// What holds within more bytes holds within fewer.
double Selection::atLeast(int64_t peak) const {
  double most = leastTime_.within(peak).nanoseconds;
  for (auto [limit, atLeast] : proven_)
    if (limit >= peak)
      most = std::max(most, atLeast);
  return most;
}

} // namespace gpuc
