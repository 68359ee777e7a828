#include "passes/placement/Fit.h"

#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace gpuc::placement {
namespace {

/// An item in its place.
struct Placed {
  int64_t offset;
  int64_t end;
  size_t item;
  uint32_t first, last;  // its sections, so that a walk over many reads nothing else
};

/// The items placed so far in the order of their offsets, so that one walk over them meets the gaps from low
/// to high.
class Shelf {
 public:
  Shelf(const Instance& instance, FitRule rule) : instance_(instance), rule_(rule) {
    placed_.reserve(instance.size());
  }

  int64_t findOffset(size_t item) {
    const Item& it = instance_[item];
    const int64_t size = it.size, alignment = it.alignment;
    int64_t below = 0;  // where the gap that is being walked over begins
    int64_t best = -1, best_room = INT64_MAX;
    for (const Placed& other : placed_) {
      ++work_;
      bool meets = other.first < it.last && it.first < other.last;
      if (!meets && !(it.has_extra && instance_.conflict(item, other.item))) continue;
      int64_t start = alignUp(below, alignment);
      if (other.offset - start >= size) {
        if (rule_ == FitRule::kFirst) return start;
        if (other.offset - below < best_room) {
          best = start;
          best_room = other.offset - below;
        }
      }
      below = std::max(below, other.end);
    }
    return best >= 0 ? best : alignUp(below, alignment);
  }

  void add(size_t item, int64_t offset) {
    auto after = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                  [](int64_t value, const Placed& other) { return value < other.offset; });
    const Item& it = instance_[item];
    placed_.insert(after, {offset, offset + it.size, item, it.first, it.last});
  }

  int64_t work() const { return work_; }

 private:
  const Instance& instance_;
  FitRule rule_;
  std::vector<Placed> placed_;
  int64_t work_ = 0;
};

}  // namespace

Placement placeInOrder(const Instance& instance, const std::vector<size_t>& order, FitRule rule,
                       int64_t limit, Budget& budget) {
  constexpr int64_t kWorkPerItem = 30, kWorkPerPlacement = 300;  // about what they cost beside the pairs
  Placement placement;
  placement.offsets.assign(instance.size(), 0);
  Shelf shelf(instance, rule);
  for (size_t item : order) {
    int64_t before = shelf.work();
    int64_t offset = shelf.findOffset(item);
    shelf.add(item, offset);
    placement.offsets[item] = offset;
    placement.height = std::max(placement.height, offset + instance[item].size);
    if (placement.height > limit) break;
    if (!budget.spend(shelf.work() - before + kWorkPerItem)) {
      placement.height = kNoHeight;
      break;
    }
  }
  placement.work = shelf.work() + kWorkPerItem * static_cast<int64_t>(order.size()) + kWorkPerPlacement;
  return placement;
}

namespace {

/// What is free below the top, as an allocator has it: gaps by where they begin, and by how long they are.
class Gaps {
 public:
  /// Takes `size` bytes at a multiple of `alignment`: of the shortest gap that holds them wherever it begins,
  /// or at the top.
  int64_t take(int64_t size, int64_t alignment) {
    auto found = by_length_.lower_bound({size + alignment - 1, 0});
    if (found == by_length_.end()) {
      int64_t offset = alignUp(top_, alignment);
      put(top_, offset);
      top_ = offset + size;
      return offset;
    }
    auto [length, begin] = *found;
    remove(begin);
    int64_t offset = alignUp(begin, alignment);
    put(begin, offset);
    put(offset + size, begin + length);
    return offset;
  }

  /// Gives back the bytes [begin, end), which become one gap with those beside them.
  void giveBack(int64_t begin, int64_t end) {
    auto above = by_begin_.lower_bound(begin);
    if (above != by_begin_.begin()) {
      auto below = std::prev(above);
      if (below->second == begin) {
        begin = below->first;
        remove(begin);
      }
    }
    above = by_begin_.find(end);
    if (above != by_begin_.end()) {
      int64_t last = above->second;
      remove(end);
      end = last;
    }
    put(begin, end);
  }

 private:
  void put(int64_t begin, int64_t end) {
    if (begin == end) return;
    by_begin_[begin] = end;
    by_length_.insert({end - begin, begin});
  }
  void remove(int64_t begin) {
    auto gap = by_begin_.find(begin);
    by_length_.erase({gap->second - begin, begin});
    by_begin_.erase(gap);
  }

  std::map<int64_t, int64_t> by_begin_;              // begin → end
  std::set<std::pair<int64_t, int64_t>> by_length_;  // length and begin
  int64_t top_ = 0;
};

}  // namespace

Placement placeInTime(const Instance& instance) {
  std::vector<size_t> starts(instance.size()), ends;
  std::iota(starts.begin(), starts.end(), size_t{0});
  // What is in conflict beyond its lifetime gives nothing back.
  for (size_t item : starts)
    if (!instance[item].has_extra) ends.push_back(item);
  std::sort(starts.begin(), starts.end(), [&](size_t a, size_t b) {
    return std::tuple(instance[a].first, -instance[a].size, a) <
           std::tuple(instance[b].first, -instance[b].size, b);
  });
  std::sort(ends.begin(), ends.end(), [&](size_t a, size_t b) {
    return std::tuple(instance[a].last, a) < std::tuple(instance[b].last, b);
  });
  Placement placement;
  placement.offsets.assign(instance.size(), 0);
  Gaps gaps;
  auto ended = ends.begin();
  for (size_t item : starts) {
    for (; ended != ends.end() && instance[*ended].last <= instance[item].first; ++ended)
      gaps.giveBack(placement.offsets[*ended], placement.offsets[*ended] + instance[*ended].size);
    int64_t offset = gaps.take(instance[item].size, instance[item].alignment);
    placement.offsets[item] = offset;
    placement.height = std::max(placement.height, offset + instance[item].size);
  }
  return placement;
}

}  // namespace gpuc::placement
