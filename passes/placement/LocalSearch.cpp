#include "passes/placement/LocalSearch.h"

#include <random>

namespace gpuc::placement {
namespace {

/// A random one of the places in `order` whose item ends at the height.
size_t pickTopPlace(const Instance& instance, const Order& order, const Placement& placement,
                    std::mt19937_64& random) {
  std::vector<size_t> places;
  for (size_t place = 0; place < order.size(); ++place) {
    size_t item = order[place];
    if (placement.offsets[item] + instance[item].size == placement.height) places.push_back(place);
  }
  return places[random() % places.size()];
}

}  // namespace

Placement improveOrder(const Instance& instance, Order order, int64_t goal, uint64_t seed, Budget& budget) {
  Budget clock(INT64_MAX, budget.deadline());  // what a placement costs is counted once it is there
  Placement best = placeInOrder(instance, order, FitRule::kFirst, INT64_MAX, clock);
  std::mt19937_64 random(seed);
  while (best.height > goal && !clock.exhausted()) {
    size_t from = pickTopPlace(instance, order, best, random);
    // The first in the order lies at the bottom: if it reaches the height, it alone is as large as the bound.
    if (from == 0) return best;
    size_t to = random() % from;
    std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
    Placement next = placeInOrder(instance, order, FitRule::kFirst, best.height, clock);
    if (!budget.spend(next.work)) return best;
    if (next.height <= best.height)
      best = std::move(next);
    else
      std::rotate(order.begin() + to, order.begin() + to + 1, order.begin() + from + 1);
  }
  return best;
}

}  // namespace gpuc::placement
