#include "passes/placement/Halves.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace gpuc::placement {
namespace {

/// Smaller buffers have few bytes; and so many are looked at, the largest.
constexpr int64_t kLeastBytes = 64 << 10;
constexpr size_t kMostLarge = 1024;

/// The middles of so many buffers before and behind one are tried as its own, and all buffers so often.
constexpr size_t kMostTried = 24;
constexpr int kRounds = 4;

struct Range {
  int64_t begin, end;

  int64_t bytes() const { return std::max<int64_t>(0, end - begin); }
  int64_t middle() const { return begin + (end - begin) / 2; }
  Range with(Range other) const { return {std::max(begin, other.begin), std::min(end, other.end)}; }
};

/// Of `part`, which lies in both ranges: what is of the first half of one and of the second of the other.
int64_t misfit(Range one, Range other, Range part) {
  const Range between = {std::min(one.middle(), other.middle()), std::max(one.middle(), other.middle())};
  return part.with(between).bytes();
}

class Halves {
 public:
  Halves(const Problem& problem, Solution& solution) : problem_(problem), offsets_(solution.offsets) {
    if (problem.buffers.empty()) return;
    int64_t first = problem.buffers.front().lower, last = first;
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const Buffer& buffer = problem.buffers[i];
      first = std::min(first, buffer.lower), last = std::max(last, buffer.upper);
      height_ = std::max(height_, rangeAt(i, offsets_[i]).end);
      if (buffer.size >= kLeastBytes) large_.push_back(i);
    }
    span_ = last - first;
    keepLargest();
    paired_.resize(problem.buffers.size());
    for (const auto& [a, b] : problem.conflicts) paired_[a].push_back(b), paired_[b].push_back(a);
  }

  int64_t total() const {
    int64_t bytes = 0;
    for (size_t buffer : large_) bytes += misfits(buffer, offsets_[buffer], /*before=*/true);
    return bytes;
  }

  /// Whether any was moved.
  bool improve() {
    bool moved = false;
    for (size_t buffer : large_) moved |= improve(buffer);
    return moved;
  }

 private:
  void keepLargest() {
    const std::vector<Buffer>& buffers = problem_.buffers;
    std::sort(large_.begin(), large_.end(), [&](size_t a, size_t b) {
      return std::pair(-buffers[a].size, a) < std::pair(-buffers[b].size, b);
    });
    large_.resize(std::min(large_.size(), kMostLarge));
    std::sort(large_.begin(), large_.end(), [&](size_t a, size_t b) {
      return std::pair(buffers[a].lower, a) < std::pair(buffers[b].lower, b);
    });
  }

  struct Neighbour {
    int64_t gap;  // in time
    size_t buffer;
  };

  Range rangeAt(size_t buffer, int64_t offset) const {
    return {offset, offset + occupiedBytes(problem_.buffers[buffer])};
  }
  Range rangeOf(size_t buffer) const { return rangeAt(buffer, offsets_[buffer]); }

  bool areAtOnce(size_t a, size_t b) const {
    const Buffer &one = problem_.buffers[a], &other = problem_.buffers[b];
    return one.lower < other.upper && other.lower < one.upper;
  }

  /// The time from the end of one buffer to the begin of the other, perhaps in the next step.
  int64_t gap(size_t from, size_t to) const {
    const int64_t time = problem_.buffers[to].lower - problem_.buffers[from].upper;
    return time >= 0 ? time : time + span_;
  }

  /// The large buffers that live before or behind `buffer`, in the range if there is one; the nearest first.
  std::vector<Neighbour> neighbours(size_t buffer, bool before, std::optional<Range> range) const {
    std::vector<Neighbour> found;
    for (size_t other : large_)
      if (!areAtOnce(buffer, other) && (!range || rangeOf(other).with(*range).bytes() > 0))
        found.push_back({before ? gap(other, buffer) : gap(buffer, other), other});
    std::sort(found.begin(), found.end(), [](const Neighbour& a, const Neighbour& b) {
      return std::pair(a.gap, a.buffer) < std::pair(b.gap, b.buffer);
    });
    return found;
  }

  /// Bytes that lie in the other half of the buffer before, or behind, that has them.
  int64_t misfits(size_t buffer, int64_t offset, bool before) const {
    const Range range = rangeAt(buffer, offset);
    std::vector<Range> open = {range};
    int64_t bytes = 0;
    for (const Neighbour& near : neighbours(buffer, before, range)) {
      const Range other = rangeOf(near.buffer);
      std::vector<Range> left;
      for (Range part : open) {
        bytes += misfit(range, other, part.with(other));
        for (Range rest : {Range{part.begin, std::min(part.end, other.begin)},
                           Range{std::max(part.begin, other.end), part.end}})
          if (rest.bytes() > 0) left.push_back(rest);
      }
      open = std::move(left);
      if (open.empty()) break;
    }
    return bytes;
  }

  int64_t cost(size_t buffer, int64_t offset) const {
    return misfits(buffer, offset, true) + misfits(buffer, offset, false);
  }

  bool fits(size_t buffer, int64_t offset) const {
    const Range range = rangeAt(buffer, offset);
    if (range.begin < 0 || range.end > height_) return false;
    for (size_t other = 0; other < problem_.buffers.size(); ++other)
      if (other != buffer && areAtOnce(buffer, other) && rangeOf(other).with(range).bytes() > 0) return false;
    return std::none_of(paired_[buffer].begin(), paired_[buffer].end(),
                        [&](size_t other) { return rangeOf(other).with(range).bytes() > 0; });
  }

  bool improve(size_t buffer) {
    const int64_t now = offsets_[buffer], alignment = problem_.buffers[buffer].alignment;
    int64_t best = now, least = cost(buffer, now);
    if (least == 0) return false;
    for (bool before : {true, false}) {
      const std::vector<Neighbour> near = neighbours(buffer, before, std::nullopt);
      for (size_t i = 0; i < std::min(near.size(), kMostTried); ++i) {
        const int64_t begin = rangeOf(near[i].buffer).middle() - rangeOf(buffer).bytes() / 2;
        const int64_t offset = begin - begin % alignment;
        if (begin < 0 || !fits(buffer, offset)) continue;
        if (const int64_t bytes = cost(buffer, offset); bytes < least) best = offset, least = bytes;
      }
    }
    offsets_[buffer] = best;
    return best != now;
  }

  const Problem& problem_;
  std::vector<int64_t>& offsets_;
  std::vector<size_t> large_;                // by the time at which they begin
  std::vector<std::vector<size_t>> paired_;  // conflicts that the times do not show
  int64_t height_ = 0, span_ = 0;
};

}  // namespace

int64_t bytesOfOtherHalf(const Problem& problem, const Solution& solution) {
  Solution same = solution;
  return Halves(problem, same).total();
}

void matchHalves(const Problem& problem, Solution& solution) {
  Solution best = solution;
  int64_t least = bytesOfOtherHalf(problem, solution);
  for (int round = 0; round < kRounds && Halves(problem, solution).improve(); ++round)
    if (const int64_t bytes = bytesOfOtherHalf(problem, solution); bytes < least) {
      best = solution;
      least = bytes;
    }
  solution = std::move(best);
  solution.height = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].size > 0)
      solution.height = std::max(solution.height, solution.offsets[i] + occupiedBytes(problem.buffers[i]));
}

}  // namespace gpuc::placement
