// Placing items one after another in a given order: everything else about a greedy is which order it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/placement/Budget.h"
#include "passes/placement/Instance.h"

namespace gpuc::placement {

/// Into which gap between the conflicting items that are placed already an item goes.
enum class FitRule {
  kFirst,  // the lowest that is large enough
  kBest,   // the smallest that is large enough, above all if there is none
};

struct Placement {
  std::vector<int64_t> offsets;  // bytes, one for each item
  int64_t height = 0;
  int64_t work = 0;  // steps that it took, as a Budget counts them
};

/// Places all items in `order`, a permutation of them. O(n²), with a small constant. Gives up as soon as an
/// item ends above `limit`, or the budget does; the height is then more than the limit, or none.
Placement placeInOrder(const Instance& instance, const std::vector<size_t>& order, FitRule rule,
                       int64_t limit, Budget& budget);

/// The height of what was given up for want of a budget.
inline constexpr int64_t kNoHeight = INT64_MAX;

/// Places all items as an allocator would that sees them in time, each in the smallest gap that is surely
/// large enough for it. O(n log n), and so what there is when there is time for nothing else.
Placement placeInTime(const Instance& instance);

}  // namespace gpuc::placement
