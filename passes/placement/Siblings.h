// Guesses which items lie side by side, and makes one of them: what is left is smaller, and soon placed or
// soon refuted.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/placement/Budget.h"
#include "passes/placement/Instance.h"

namespace gpuc::placement {

/// Two items, or what was joined before, at one place: the second begins where the first ends, in time if
/// they have one size, or in memory if they have one lifetime.
struct Joined {
  size_t first, second;
  bool in_memory;
};

/// An instance some of whose items are joined. Items below the number of items of the original are those, the
/// others are what was joined, in the order in which that happened.
struct Siblings {
  Problem problem;                // a buffer for each that is part of no other
  std::vector<size_t> buffer_of;  // item → its buffer, or none
  std::vector<int64_t> sizes;     // item → bytes
  std::vector<Joined> joined;

  static constexpr size_t kNone = SIZE_MAX;

  /// Original item → offset, from the offsets of the buffers.
  std::vector<int64_t> toItems(const std::vector<int64_t>& buffer_offsets) const;
};

/// Joins neighbours in time of one size, and neighbours in memory of one lifetime whose sizes are together
/// that of a neighbour in time: where memory is full, few others could take its place. Which ones, of those
/// that exclude each other, is left to the seed, as is how many are left alone. An instance without conflict
/// pairs; items of different alignment are not joined. Stops where the budget ends.
Siblings joinSiblings(const Instance& instance, uint64_t seed, Budget& budget);

}  // namespace gpuc::placement
