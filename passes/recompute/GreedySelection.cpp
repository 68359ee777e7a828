//===- GreedySelection.cpp - One value after another, dropped or kept -----------===//

#include "passes/recompute/GreedySelection.h"

#include "passes/base/StableSort.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

namespace gpuc {
namespace {

/// Of the values that could be dropped next, so many are weighed.
constexpr size_t kWeighed = 32;

/// Of so many values that there are one is dropped at a time.
constexpr size_t kEach = 128;

/// Time for each byte.
double worth(const BlockGraph &graph, unsigned value) {
  return graph.nanoseconds(value) / (1 + graph.bytes(value));
}

void sortByWorth(const BlockGraph &graph, std::vector<unsigned> &values) {
  stableSort(values, [&](unsigned a, unsigned b) { return worth(graph, a) < worth(graph, b); });
}

/// The values to drop next, the best first.
std::vector<unsigned> weigh(const BlockGraph &graph, llvm::BitVector &kept, const llvm::BitVector &crossing,
                            const BlockGraph::Outcome &now, int64_t limit, int64_t &effort) {
  std::vector<unsigned> candidates;
  for (unsigned value : crossing.set_bits())
    if (kept.test(value))
      candidates.push_back(value);
  sortByWorth(graph, candidates);
  std::vector<std::pair<double, unsigned>> rates;
  size_t weighed = 0;
  for (unsigned value : candidates) {
    if (effort <= 0 || (weighed++ >= kWeighed && !rates.empty()))
      break;
    kept.reset(value);
    const BlockGraph::Outcome without = graph.simulate(kept, limit);
    kept.set(value);
    effort -= without.commands;
    if (const double rate = (now.excess - without.excess) / (1 + without.nanoseconds - now.nanoseconds);
        rate > 0)
      rates.push_back({-rate, value});
  }
  stableSort(rates, [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<unsigned> best;
  for (auto [rate, value] : rates)
    best.push_back(value);
  return best;
}

} // namespace

bool dropToFit(const BlockGraph &graph, llvm::BitVector &kept, int64_t limit, int64_t effort) {
  llvm::BitVector crossing(graph.size());
  for (;;) {
    const BlockGraph::Outcome now = graph.simulate(kept, limit, &crossing);
    if (now.excess == 0)
      return true;
    std::vector<unsigned> best = weigh(graph, kept, crossing, now, limit, effort);
    if (best.empty())
      return false;
    best.resize(std::min(best.size(), 1 + graph.size() / kEach));
    for (unsigned value : best)
      kept.reset(value);
  }
}

/// In a row as many at once as went well the last time and as many again, or one if it did not.
void keepWhatFits(const BlockGraph &graph, llvm::BitVector &kept, int64_t limit, int64_t effort) {
  std::vector<unsigned> dropped;
  for (unsigned value = 0; value < graph.size(); ++value)
    if (!kept.test(value))
      dropped.push_back(value);
  sortByWorth(graph, dropped);
  BlockGraph::Outcome now = graph.simulate(kept, limit);
  for (size_t together = 1; !dropped.empty() && effort > 0;) {
    together = std::min(together, dropped.size());
    llvm::BitVector with = kept;
    for (unsigned value : llvm::ArrayRef(dropped).take_back(together))
      with.set(value);
    const BlockGraph::Outcome then = graph.simulate(with, limit);
    effort -= then.commands;
    const bool isBetter = then.excess == 0 && then.nanoseconds < now.nanoseconds;
    if (isBetter) {
      kept = std::move(with);
      now = then;
    }
    if (isBetter || together == 1)
      dropped.resize(dropped.size() - together);
    together = isBetter ? 2 * together : std::max<size_t>(1, together / 2);
  }
}

void swapWithin(const BlockGraph &graph, llvm::BitVector &kept, int64_t limit, int64_t effort) {
  BlockGraph::Outcome now = graph.simulate(kept, limit);
  /// Whether it is better with `in` kept, and `out` not.
  auto swap = [&](unsigned in, std::optional<unsigned> out) {
    kept.set(in);
    if (out)
      kept.reset(*out);
    const BlockGraph::Outcome then = graph.simulate(kept, limit);
    effort -= then.commands;
    if (then.excess == 0 && then.nanoseconds < now.nanoseconds) {
      now = then;
      return true;
    }
    kept.reset(in);
    if (out)
      kept.set(*out);
    return false;
  };
  auto swapOne = [&](unsigned in) {
    if (swap(in, std::nullopt))
      return true;
    for (unsigned out = 0; out < graph.size() && effort > 0; ++out)
      if (out != in && kept.test(out) && swap(in, out))
        return true;
    return false;
  };
  for (bool isBetter = true; isBetter && effort > 0;) {
    isBetter = false;
    for (unsigned in = 0; in < graph.size() && effort > 0; ++in)
      if (!kept.test(in))
        isBetter |= swapOne(in);
  }
}

} // namespace gpuc
