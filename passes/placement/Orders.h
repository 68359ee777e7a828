// Orders in which a greedy takes the items. None is the best on every graph, and together they are cheap.
#pragma once

#include <vector>

#include "passes/placement/Budget.h"
#include "passes/placement/Instance.h"

namespace gpuc::placement {

using Order = std::vector<size_t>;  // a permutation of the items

/// How many there are.
inline constexpr size_t kOrders = 9;

/// The items in one of the orders, 0 … kOrders - 1: first those by which a greedy most often reaches the
/// bound. Empty if the budget ended.
Order orderOf(const Instance& instance, size_t number, Budget& budget);

/// By start, as an allocator without foresight would see them; larger first at equal starts.
Order orderByStart(const Instance& instance);

}  // namespace gpuc::placement
