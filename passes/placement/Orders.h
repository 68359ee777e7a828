// Orders in which a greedy takes the items. None is the best on every graph, and together they are cheap.
#pragma once

#include <vector>

#include "passes/placement/Budget.h"
#include "passes/placement/Instance.h"

namespace gpuc::placement {

using Order = std::vector<size_t>;  // a permutation of the items

/// Larger items first: short-lived giants cannot be squeezed in later.
Order orderBySize(const Instance& instance);

/// Larger size × lifetime first: what blocks most of the memory-time plane goes down first.
Order orderByArea(const Instance& instance);

/// Longer lifetime first, then larger.
Order orderByLifetime(const Instance& instance);

/// More bytes in conflict with the item first: it has the least freedom.
Order orderByConflicts(const Instance& instance);

/// Where memory is fullest first: by the largest section total that the item lives through, then lifetime and
/// size.
Order orderByContention(const Instance& instance);

/// By start, as an allocator without foresight would see them; larger first at equal starts.
Order orderByStart(const Instance& instance);

/// By end, latest first: the mirror image of the above, which suits a backward pass.
Order orderByEnd(const Instance& instance);

/// The items from low to high in a packing by skyline: at each step the item that can lie lowest on all that
/// is placed goes there; of several the one that lives longest, then the larger. O(n²); the others are O(n
/// log n). Empty if the budget ends first.
Order orderBySkyline(const Instance& instance, Budget& budget);

}  // namespace gpuc::placement
