#include "passes/placement/Fit.h"

namespace gpuc::placement {
namespace {

/// An item in its place.
struct Placed {
  int64_t offset;
  int64_t end;
  size_t item;
};

/// The items placed so far in the order of their offsets, so that one walk over them meets the gaps from low
/// to high.
class Shelf {
 public:
  Shelf(const Instance& instance, FitRule rule) : instance_(instance), rule_(rule) {
    placed_.reserve(instance.size());
  }

  int64_t findOffset(size_t item) {
    const int64_t size = instance_[item].size, alignment = instance_[item].alignment;
    int64_t below = 0;  // where the gap that is being walked over begins
    int64_t best = -1, best_room = INT64_MAX;
    for (const Placed& other : placed_) {
      ++work_;
      if (!instance_.conflict(item, other.item)) continue;
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
    placed_.insert(after, {offset, offset + instance_[item].size, item});
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
                       int64_t limit) {
  Placement placement;
  placement.offsets.assign(instance.size(), 0);
  Shelf shelf(instance, rule);
  for (size_t item : order) {
    int64_t offset = shelf.findOffset(item);
    shelf.add(item, offset);
    placement.offsets[item] = offset;
    placement.height = std::max(placement.height, offset + instance[item].size);
    if (placement.height > limit) break;
  }
  constexpr int64_t kWorkPerItem = 30, kWorkPerPlacement = 300;  // about what they cost beside the pairs
  placement.work = shelf.work() + kWorkPerItem * static_cast<int64_t>(order.size()) + kWorkPerPlacement;
  return placement;
}

}  // namespace gpuc::placement
