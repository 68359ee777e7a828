// Branch and bound over placements, after MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator
// for Hardware-Accelerated Machine Learning", ASPLOS 2023).
#pragma once

#include <cstdint>
#include <optional>

#include "passes/placement/Budget.h"
#include "passes/placement/Fit.h"

namespace gpuc::placement {

struct SearchResult {
  std::optional<Placement> placement;
  bool complete = false;  // without a placement: there is none, as opposed to: the search gave up
};

/// Looks for a placement no higher than `capacity`. Places items from low to high, each directly upon what
/// lies below it. That loses no solution: any can be pressed down until every item rests on something, and
/// then be built in the order of the offsets. Gives up when the budget ends, and at once on more than 5,000
/// items. That there is none rests on 64-bit hashes of search states being distinct; a placement that is
/// found does not.
SearchResult searchWithin(const Instance& instance, int64_t capacity, Budget& budget);

}  // namespace gpuc::placement
