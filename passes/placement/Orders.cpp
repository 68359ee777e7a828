#include "passes/placement/Orders.h"

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

}  // namespace

Order orderBySize(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) { return std::tuple(-instance[i].size, -instance[i].duration); });
}

Order orderByArea(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) { return std::tuple(-area(instance[i]), -instance[i].size); });
}

Order orderByLifetime(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) { return std::tuple(-instance[i].duration, -instance[i].size); });
}

Order orderByConflicts(const Instance& instance) {
  std::vector<int64_t> bytes(instance.size(), 0);
  for (size_t a = 0; a < instance.size(); ++a)
    for (size_t b = 0; b < instance.size(); ++b)
      if (instance.conflict(a, b)) bytes[a] += instance[b].size;
  return sortedBy(instance, [&](size_t i) { return std::tuple(-bytes[i], -instance[i].size); });
}

Order orderByContention(const Instance& instance) {
  std::vector<int64_t> most(instance.size(), 0);
  const std::vector<int64_t>& totals = instance.sectionTotals();
  for (size_t i = 0; i < instance.size(); ++i)
    most[i] = *std::max_element(totals.begin() + instance[i].first, totals.begin() + instance[i].last);
  return sortedBy(instance,
                  [&](size_t i) { return std::tuple(-most[i], -instance[i].duration, -instance[i].size); });
}

Order orderByStart(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) { return std::tuple(instance[i].first, -instance[i].size); });
}

Order orderByEnd(const Instance& instance) {
  return sortedBy(instance, [&](size_t i) {
    return std::tuple(-static_cast<int64_t>(instance[i].last), -instance[i].size);
  });
}

Order orderBySkyline(const Instance& instance) {
  std::vector<int64_t> lowest(instance.size(), 0);  // where each item would lie on those placed so far
  Order waiting = orderByLifetime(instance);
  Order order;
  while (!waiting.empty()) {
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

}  // namespace gpuc::placement
