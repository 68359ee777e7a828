#include "passes/placement/LiveBytes.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace gpuc::placement {

// A tree over the times: its leaves are single ones, each node stands for those below it.
LiveBytes::LiveBytes(int64_t times)
    : times_(times == 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(times)))),
      nodes_(static_cast<size_t>(2 * times_)) {}

void LiveBytes::add(int64_t bytes, int64_t lower, int64_t upper) {
  if (lower < upper) add(all(), bytes, lower, upper);
}

void LiveBytes::add(Range range, int64_t bytes, int64_t lower, int64_t upper) {
  if (range.isApart(lower, upper)) return;
  Node& node = nodes_[range.node];
  if (range.isWithin(lower, upper)) {
    node.added += bytes;
    node.most += bytes;
    return;
  }
  add(range.left(), bytes, lower, upper);
  add(range.right(), bytes, lower, upper);
  node.most = node.added + std::max(nodes_[range.left().node].most, nodes_[range.right().node].most);
}

int64_t LiveBytes::most(int64_t lower, int64_t upper) const { return most(all(), lower, upper); }

int64_t LiveBytes::most(Range range, int64_t lower, int64_t upper) const {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  if (range.isApart(lower, upper)) return kNone;
  const Node& node = nodes_[range.node];
  if (range.isWithin(lower, upper)) return node.most;
  const int64_t below = std::max(most(range.left(), lower, upper), most(range.right(), lower, upper));
  return below == kNone ? kNone : node.added + below;
}

int64_t LiveBytes::peak() const { return nodes_.empty() ? 0 : nodes_[0].most; }

int64_t LiveBytes::peakTime() const {
  Range range = all();
  while (range.upper - range.lower > 1) {
    const bool is_left = nodes_[range.left().node].most >= nodes_[range.right().node].most;
    range = is_left ? range.left() : range.right();
  }
  return range.lower;
}

}  // namespace gpuc::placement
