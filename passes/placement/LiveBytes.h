// How many bytes are live at each time, with cheap questions about what a change would make of it.
#pragma once

#include <cstdint>
#include <vector>

namespace gpuc::placement {

/// Bytes at times 0 … times - 1, at first none. Each call takes time in proportion to the logarithm of
/// `times`.
class LiveBytes {
 public:
  explicit LiveBytes(int64_t times);

  /// So many more at the times [lower, upper), which may be empty; negative: so many less.
  void add(int64_t bytes, int64_t lower, int64_t upper);

  /// The most at any of the times [lower, upper), of which there is one at least.
  int64_t most(int64_t lower, int64_t upper) const;

  /// The most of all, 0 if there are no times; and the first time with so many.
  int64_t peak() const;
  int64_t peakTime() const;

 private:
  /// Of a range of times: what was added to all of it, and the most of that and what was added to parts.
  struct Node {
    int64_t added = 0;
    int64_t most = 0;
  };
  struct Range {
    size_t node;
    int64_t lower, upper;

    Range left() const { return {2 * node + 1, lower, middle()}; }
    Range right() const { return {2 * node + 2, middle(), upper}; }
    bool isWithin(int64_t from, int64_t to) const { return from <= lower && upper <= to; }
    bool isApart(int64_t from, int64_t to) const { return upper <= from || to <= lower; }

   private:
    int64_t middle() const { return lower + (upper - lower) / 2; }
  };

  Range all() const { return {0, 0, times_}; }
  void add(Range range, int64_t bytes, int64_t lower, int64_t upper);
  int64_t most(Range range, int64_t lower, int64_t upper) const;

  int64_t times_;  // a power of two, or 0
  std::vector<Node> nodes_;
};

}  // namespace gpuc::placement
