#include "runtime/plan/parts.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace gpuc {

PartTouch touchOfParts(Parts parts, ByteRange first, std::span<const Loop> loops, int64_t stride,
                       bool by_rows, bool written) {
  const int64_t size = first.end - first.begin;
  PartTouch touch = {
      .bytes = overLoops(first, loops), .window = first, .stride = 0, .period = 0, .written = written};
  if (parts.by_rows && by_rows) {
    touch.stride = size / parts.count;
    touch.period = size;
    touch.window.end = first.begin + touch.stride;
  } else if (!parts.by_rows) {
    touch.stride = stride;
    touch.period = std::abs(stride) * parts.count;
    touch.bytes = overLoops(touch.bytes, std::array{Loop{stride, parts.count}});
  }
  for (Loop loop : loops) {
    const bool recurs = loop.count < 2 || (touch.period != 0 && loop.stride % touch.period == 0);
    if (!recurs) touch.window = overLoops(touch.window, std::array{loop});
  }
  return touch;
}

namespace {

/// Operands whose bytes meet, or are joined by others': `touches` in the order of their beginnings.
class Cluster {
 public:
  explicit Cluster(std::span<const PartTouch> touches) : touches_(touches) {}

  void add(size_t index) {
    end_ = members_.empty() ? touches_[index].bytes.end : std::max(end_, touches_[index].bytes.end);
    members_.push_back(index);
  }
  bool isBefore(const PartTouch& touch) const { return members_.empty() || touch.bytes.begin >= end_; }
  void clear() { members_.clear(); }

  std::optional<std::pair<size_t, size_t>> meeting() const {
    const auto written = std::find_if(members_.begin(), members_.end(),
                                      [&](size_t member) { return touches_[member].written; });
    if (written == members_.end()) return std::nullopt;
    const PartTouch& reference = touches_[*written];
    Extreme low = {0, *written}, high = {0, *written};
    for (size_t member : members_) {
      const PartTouch& touch = touches_[member];
      if (touch.stride == 0 || touch.stride != reference.stride) return std::pair(*written, member);
      const int64_t begin = (touch.window.begin - reference.window.begin) % reference.period;
      low = std::min(low, {begin, member});
      high = std::max(high, {begin + touch.window.end - touch.window.begin, member});
      if (high.place - low.place > std::abs(reference.stride)) return std::pair(low.member, high.member);
    }
    return std::nullopt;
  }

 private:
  struct Extreme {
    int64_t place;
    size_t member;
    bool operator<(const Extreme& other) const { return place < other.place; }
  };

  std::span<const PartTouch> touches_;
  std::vector<size_t> members_;
  int64_t end_ = 0;
};

}  // namespace

std::optional<std::pair<size_t, size_t>> findMeetingParts(std::span<const PartTouch> touches) {
  std::vector<size_t> order(touches.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(touches[a].bytes.begin, a) < std::pair(touches[b].bytes.begin, b);
  });
  Cluster cluster(touches);
  for (size_t index : order) {
    if (cluster.isBefore(touches[index])) {
      if (auto meeting = cluster.meeting()) return meeting;
      cluster.clear();
    }
    cluster.add(index);
  }
  return cluster.meeting();
}

}  // namespace gpuc
