//===- Tradeoff.cpp - What a step takes in memory and in time ------------------===//

#include "passes/recompute/Tradeoff.h"

#include "passes/base/StableSort.h"

#include <limits>

using namespace mlir;

namespace gpuc {

/// Slices at once take no longer than in turn.
static auto rankOf(const TradeoffPoint &point) {
  return std::pair(point.figures.nanoseconds, point.choice.slicesInTurn);
}

Tradeoff::Tradeoff(std::vector<TradeoffPoint> points, PlanTrial place)
    : points_(std::move(points)), place_(std::move(place)) {
  stableSort(points_, [](const TradeoffPoint &a, const TradeoffPoint &b) { return rankOf(a) < rankOf(b); });
}

LogicalResult Tradeoff::place(TradeoffPoint &point) {
  if (point.figures.isPlaced)
    return success();
  FailureOr<PlanFigures> figures = place_(point.choice);
  if (failed(figures))
    return failure();
  // By its prediction it has its place among the others.
  figures->nanoseconds = point.figures.nanoseconds;
  point.figures = *figures;
  return success();
}

/// What is bounded for any faster one, which takes more memory, is so for this one.
TradeoffPoint Tradeoff::withBound(const TradeoffPoint &point) const {
  TradeoffPoint bounded = point;
  for (const TradeoffPoint &other : points_)
    if (rankOf(other) <= rankOf(point))
      bounded.leastNanoseconds = std::max(bounded.leastNanoseconds, other.leastNanoseconds);
  return bounded;
}

FailureOr<std::optional<TradeoffPoint>> Tradeoff::fastestWithin(int64_t bytes) {
  const TradeoffPoint *best = nullptr;
  for (TradeoffPoint &point : points_) {
    if (best && rankOf(*best) < rankOf(point))
      break;
    const int64_t most = best ? best->figures.peakBytes - 1 : bytes;
    if (point.figures.peakBytes > most)
      continue;
    if (failed(place(point)))
      return failure();
    if (point.figures.peakBytes <= most)
      best = &point;
  }
  return best ? std::optional(withBound(*best)) : std::nullopt;
}

FailureOr<TradeoffPoint> Tradeoff::least() {
  SmallVector<TradeoffPoint *> byBytes =
      llvm::map_to_vector(points_, [](TradeoffPoint &point) { return &point; });
  stableSort(byBytes, [](const TradeoffPoint *a, const TradeoffPoint *b) {
    return a->figures.peakBytes < b->figures.peakBytes;
  });
  int64_t least = std::numeric_limits<int64_t>::max();
  for (TradeoffPoint *point : byBytes) {
    if (point->figures.peakBytes > least)
      break; // nor do those behind it take less
    if (failed(place(*point)))
      return failure();
    least = std::min(least, point->figures.peakBytes);
  }
  // Of those that take as little, the fastest.
  const auto found = llvm::find_if(points_, [least](const TradeoffPoint &point) {
    return point.figures.isPlaced && point.figures.peakBytes == least;
  });
  return withBound(*found);
}

FailureOr<TradeoffPoint> Tradeoff::fastest() {
  FailureOr<std::optional<TradeoffPoint>> any = fastestWithin(std::numeric_limits<int64_t>::max());
  if (failed(any))
    return failure();
  return std::move(**any);
}

FailureOr<std::vector<TradeoffPoint>> Tradeoff::curve() {
  for (TradeoffPoint &point : points_)
    if (failed(place(point)))
      return failure();
  SmallVector<const TradeoffPoint *> byRank =
      llvm::map_to_vector(points_, [](TradeoffPoint &point) -> const TradeoffPoint * { return &point; });
  stableSort(byRank, [](const TradeoffPoint *a, const TradeoffPoint *b) {
    return std::pair(rankOf(*a), a->figures.peakBytes) < std::pair(rankOf(*b), b->figures.peakBytes);
  });
  std::vector<TradeoffPoint> curve;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const TradeoffPoint *point : byRank) {
    const bool isBetter = point->figures.peakBytes < least;
    if (isBetter)
      curve.push_back(withBound(*point));
    else if (point->isPolicys)
      curve.push_back(*point);
    least = std::min(least, point->figures.peakBytes);
  }
  return curve;
}

} // namespace gpuc
