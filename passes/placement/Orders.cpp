#include "passes/placement/Orders.h"

#include <bit>
#include <numeric>
#include <tuple>

namespace gpuc::placement {
namespace {

/// Sorts the items by rising `key(item)`, a tuple; the item itself decides between equal keys.
template <typename Key>
Order sortedBy(const Instance& instance, Key key) {
  Order order(instance.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    auto key_a = key(a), key_b = key(b);
    return key_a != key_b ? key_a < key_b : a < b;
  });
  return order;
}

/// In double: the product may pass 2^63, and only the order counts.
double area(const Item& item) { return static_cast<double>(item.size) * item.duration; }

/// Larger items first: short-lived giants cannot be squeezed in later.
Order orderBySize(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) { return std::tuple(-instance[i].size, -instance[i].duration); });
}

/// Larger size × lifetime first: what blocks most of the memory-time plane goes down first.
Order orderByArea(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) { return std::tuple(-area(instance[i]), -instance[i].size); });
}

/// Longer lifetime first, then larger.
Order orderByLifetime(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) { return std::tuple(-instance[i].duration, -instance[i].size); });
}

/// More bytes in conflict with the item first: it has the least freedom.
Order orderByConflicts(const Instance& instance) {
  // Of the items that begin before one ends, those that end before it begins are no neighbours in time.
  const size_t sections = instance.sectionCount();
  std::vector<int64_t> begun(sections + 1, 0), ended(sections + 1, 0);  // bytes, up to a section
  for (size_t i = 0; i < instance.size(); ++i) {
    begun[instance[i].first + 1] += instance[i].size;
    ended[instance[i].last] += instance[i].size;
  }
  std::partial_sum(begun.begin(), begun.end(), begun.begin());
  std::partial_sum(ended.begin(), ended.end(), ended.begin());
  std::vector<int64_t> bytes(instance.size(), 0);
  for (size_t i = 0; i < instance.size(); ++i) {
    const Item& item = instance[i];
    bytes[i] = begun[item.last] - ended[item.first];
    for (size_t other : instance.extraConflicts(i))
      if (instance[other].first >= item.last || instance[other].last <= item.first)
        bytes[i] += instance[other].size;
  }
  return sortedBy(instance, [&](size_t i) { return std::tuple(-bytes[i], -instance[i].size); });
}

/// The largest of any run of numbers, from those of runs of 1, 2, 4 … of them.
class RunMaxima {
 public:
  explicit RunMaxima(const std::vector<int64_t>& numbers) : levels_{numbers} {
    for (size_t length = 1; 2 * length <= numbers.size(); length *= 2) {
      const std::vector<int64_t>& half = levels_.back();
      std::vector<int64_t> whole(numbers.size() - 2 * length + 1);
      for (size_t i = 0; i < whole.size(); ++i) whole[i] = std::max(half[i], half[i + length]);
      levels_.push_back(std::move(whole));
    }
  }

  int64_t of(size_t first, size_t last) const {
    const size_t level = std::bit_width(last - first) - 1;
    return std::max(levels_[level][first], levels_[level][last - (size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<int64_t>> levels_;
};

/// Where memory is fullest first: by the largest section total that the item lives through, then lifetime and
/// size.
Order orderByContention(const Instance& instance) {
  RunMaxima totals(instance.sectionTotals());
  return sortedBy(instance, [&](size_t i) {
    const Item& item = instance[i];
    return std::tuple(-totals.of(item.first, item.last), -item.duration, -item.size);
  });
}

/// Where memory is about as full, what ends first first: what is freed soon lies beside what is freed next,
/// so that their room is one piece, and what outlives them lies above.
Order orderByFreeing(const Instance& instance) {
  constexpr int64_t kLevels = 10;  // as fine as totals are, the order would be by contention alone
  const int64_t level = std::max<int64_t>(instance.lowerBound() / kLevels, 1);
  RunMaxima totals(instance.sectionTotals());
  return sortedBy(instance, [&](size_t i) {
    const Item& item = instance[i];
    return std::tuple(-(totals.of(item.first, item.last) / level), item.last, -item.size);
  });
}

/// By end, latest first: the mirror image of the above, which suits a backward pass.
Order orderByEnd(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) {
    return std::tuple(-static_cast<int64_t>(instance[i].last), -instance[i].size);
  });
}

/// The items from low to high in a packing by skyline: at each step the item that can lie lowest on all that
/// is placed goes there; of several the one that lives longest, then the larger. O(n²); the others are O(n
/// log n). Empty if the budget ends first.
Order orderBySkyline(const Instance& instance, Budget& budget) {
  std::vector<int64_t> lowest(instance.size(), 0);  // where each item would lie on those placed so far
  Order waiting = orderByLifetime(instance);
  Order order;
  while (!waiting.empty()) {
    if (!budget.spend(2 * static_cast<int64_t>(waiting.size()))) return {};
    auto next = std::min_element(waiting.begin(), waiting.end(),
                                 [&](size_t a, size_t b) { return lowest[a] < lowest[b]; });
    size_t item = *next;
    waiting.erase(next);
    order.push_back(item);
    int64_t end = lowest[item] + instance[item].size;
    for (size_t other : waiting)
      if (lowest[other] < end && instance.conflict(item, other))
        lowest[other] = alignUp(end, instance[other].alignment);
  }
  return order;
}

}  // namespace

Order orderByStart(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) { return std::tuple(instance[i].first, -instance[i].size); });
}

Order orderOf(const Instance& instance, size_t number, Budget& budget) {
  constexpr size_t kSkyline = 2;  // the only one that takes long
  constexpr Order (*kOthers[])(const Instance&) = {orderByArea,     orderBySize,      orderByContention,
                                                   orderByLifetime, orderByConflicts, orderByStart,
                                                   orderByEnd,      orderByFreeing};
  if (number == kSkyline) return orderBySkyline(instance, budget);
  return kOthers[number < kSkyline ? number : number - 1](instance);
}

}  // namespace gpuc::placement
