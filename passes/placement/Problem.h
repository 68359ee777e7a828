// What memory placement is given and what it answers: plain data. The solver makes a Solution, the validator
// checks it, and neither knows the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc::placement {

/// A piece of memory that is needed during the logical times [lower, upper). It occupies its size rounded up
/// to its alignment. A buffer of size 0 occupies nothing and never overlaps.
struct Buffer {
  std::string id;
  int64_t lower = 0;
  int64_t upper = 0;      // more than lower
  int64_t size = 0;       // bytes, not negative
  int64_t alignment = 1;  // bytes, at least 1: the offset is a multiple of it
};

/// Two buffers conflict, and must not share a byte, when their intervals intersect (touching is not
/// intersecting) or when they are listed as a pair.
struct Problem {
  std::vector<Buffer> buffers;
  /// Pairs of indices into `buffers`: conflicts that the intervals do not show, because commands on different
  /// streams are not ordered by happens-before.
  std::vector<std::pair<size_t, size_t>> conflicts;
  /// The most bytes that there are; nothing means as many as it takes.
  std::optional<int64_t> capacity;
};

struct Solution {
  std::vector<int64_t> offsets;   // bytes, one for each buffer of the problem
  int64_t height = 0;             // bytes: the end of the topmost buffer
  bool stopped_by_clock = false;  // a time limit ended the search: there may be a lower one
};

/// The time at which the most bytes are live at once. No placement can be lower than `bytes`.
struct Peak {
  int64_t time = 0;
  int64_t bytes = 0;
  std::vector<size_t> live;  // buffers with a size, the largest first
};

/// Bytes that a buffer occupies: its size rounded up to its alignment.
inline int64_t occupiedBytes(const Buffer& buffer) {
  int64_t rest = buffer.size % buffer.alignment;
  return rest == 0 ? buffer.size : buffer.size + (buffer.alignment - rest);
}

/// Whether the problem is one: intervals not empty, sizes, alignments and capacity in their ranges, pairs of
/// two known buffers, and all buffers stacked upon one another still end below 2^63. The error names the
/// buffer by its id.
Status checkProblem(const Problem& problem);

/// The peak of a well-formed problem; the earliest of several. Extra conflicts are not looked at.
Peak findPeak(const Problem& problem);

/// The peak's bytes: a bound from below on the height of every solution.
int64_t lowerBound(const Problem& problem);

}  // namespace gpuc::placement
