#include "runtime/plan/live_bytes.h"

#include <algorithm>

namespace gpuc {
namespace {

/// How many bytes of a line are covered by at least one of the intervals on it. A tree over the places where
/// intervals end: each is on O(log n) nodes.
class CoveredBytes {
 public:
  explicit CoveredBytes(std::vector<uint64_t> ends) : ends_(std::move(ends)) {
    std::sort(ends_.begin(), ends_.end());
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
    nodes_.resize(4 * std::max<size_t>(1, ends_.size()));
  }

  uint64_t bytes() const { return nodes_[0].covered; }

  void add(uint64_t begin, uint64_t end, int32_t count) {
    if (begin < end) add(0, 0, ends_.size() - 1, begin, end, count);
  }

 private:
  struct Node {
    uint64_t covered = 0;
    int32_t count = 0;  // intervals on all of it
  };

  void add(size_t node, size_t low, size_t high, uint64_t begin, uint64_t end, int32_t count) {
    if (end <= ends_[low] || ends_[high] <= begin) return;
    if (begin <= ends_[low] && ends_[high] <= end) {
      nodes_[node].count += count;
    } else {
      const size_t middle = (low + high) / 2;
      add(2 * node + 1, low, middle, begin, end, count);
      add(2 * node + 2, middle, high, begin, end, count);
    }
    const bool is_leaf = high - low == 1;
    nodes_[node].covered = nodes_[node].count > 0 ? ends_[high] - ends_[low]
                           : is_leaf ? 0
                                     : nodes_[2 * node + 1].covered + nodes_[2 * node + 2].covered;
  }

  std::vector<uint64_t> ends_;
  std::vector<Node> nodes_;
};

struct Change {
  uint32_t step;
  uint32_t buffer;
  int32_t count;
};

/// Who comes and who goes, by steps; at each step those that go first.
std::vector<Change> changesOf(const Timeline& timeline) {
  std::vector<Change> changes;
  for (uint32_t i = 0; i < timeline.spans().size(); ++i)
    if (const std::optional<Span>& span = timeline.spans()[i]) {
      changes.push_back({span->first, i, 1});
      changes.push_back({span->last + 1, i, -1});
    }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.step, a.count) < std::tie(b.step, b.count);
  });
  return changes;
}

std::vector<uint64_t> endsOf(const fb::Plan& plan, const Timeline& timeline) {
  std::vector<uint64_t> ends;
  for (uint32_t i = 0; i < timeline.spans().size(); ++i)
    if (timeline.spans()[i]) {
      const fb::Buffer& buffer = *plan.buffers()->Get(i);
      ends.push_back(buffer.offset());
      ends.push_back(buffer.offset() + extentOf(plan, buffer));
    }
  return ends;
}

/// The bytes at the peak, from the bottom of the arena to its top: each counts for the buffer that begins
/// first, and what lies between two slots not at all.
void addCategories(const fb::Plan& plan, const Timeline& timeline, Peak& peak) {
  std::vector<std::pair<uint64_t, const fb::Buffer*>> live;
  for (uint32_t i = 0; i < timeline.spans().size(); ++i)
    if (const std::optional<Span>& span = timeline.spans()[i];
        span && span->first <= peak.step && peak.step <= span->last) {
      const fb::Buffer* buffer = plan.buffers()->Get(i);
      for (uint32_t slot = 0; slot < (buffer->slot_stride() ? plan.input_slots() : 1); ++slot)
        live.emplace_back(buffer->offset() + slot * buffer->slot_stride(), buffer);
    }
  std::sort(live.begin(), live.end());
  peak.bytes = 0;
  uint64_t counted = 0;  // up to here
  for (const auto& [offset, buffer] : live) {
    const uint64_t begin = std::max(counted, offset), end = offset + buffer->size();
    if (begin < end) {
      peak.by_category[buffer->category()] += end - begin;
      peak.bytes += end - begin;
    }
    counted = std::max(counted, end);
  }
}

}  // namespace

uint64_t extentOf(const fb::Plan& plan, const fb::Buffer& buffer) {
  return buffer.size() + (buffer.slot_stride() ? (plan.input_slots() - 1) * buffer.slot_stride() : 0);
}

Peak peakOf(const fb::Plan& plan, const Timeline& timeline) {
  Peak peak;
  CoveredBytes covered(endsOf(plan, timeline));
  const std::vector<Change> changes = changesOf(timeline);
  for (size_t i = 0; i < changes.size(); ++i) {
    const fb::Buffer& buffer = *plan.buffers()->Get(changes[i].buffer);
    covered.add(buffer.offset(), buffer.offset() + extentOf(plan, buffer), changes[i].count);
    const bool is_last = i + 1 == changes.size() || changes[i + 1].step != changes[i].step;
    if (is_last && covered.bytes() > peak.bytes) {
      peak.step = changes[i].step;
      peak.bytes = covered.bytes();
    }
  }
  addCategories(plan, timeline, peak);
  return peak;
}

MemoryByCategory memoryByCategory(const fb::Plan& plan) {
  Peak most;
  for (const fb::Program* program : each(plan.programs()))
    if (Peak peak = peakOf(plan, Timeline(plan, *program)); peak.bytes > most.bytes) most = std::move(peak);
  auto bytesOf = [&](fb::Category category) { return most.by_category[category]; };
  MemoryByCategory memory = {.parameter = bytesOf(fb::Category::parameter) + bytesOf(fb::Category::constant),
                             .gradient = bytesOf(fb::Category::gradient),
                             .optimizer = bytesOf(fb::Category::optimizer),
                             .activation = bytesOf(fb::Category::activation),
                             .workspace = bytesOf(fb::Category::workspace),
                             .input = bytesOf(fb::Category::input),
                             .alignment_and_gaps = 0};
  memory.alignment_and_gaps = plan.arena_bytes() - memory.sum();
  return memory;
}

}  // namespace gpuc
