// The least peak of a small problem, found in another way than the solver's, of which it shares the data
// alone.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/ordering/Problem.h"

namespace gpuc::ordering {

/// Of at most 30 commands: every set of commands that can have run is a node of a graph, every command that
/// can come next an edge, as long as what is live while it runs; sought is the way of the least longest edge.
class Judge {
 public:
  explicit Judge(const Problem& problem);

  /// -1 if it is not below `enough`.
  int64_t leastPeak(int64_t enough) const;

  int64_t peakOf(const Order& order) const;

 private:
  bool mayFollow(uint32_t done, size_t command) const;
  int64_t liveDuring(uint32_t done, size_t command) const;
  int64_t overlaid(uint32_t done, size_t command) const;

  const Problem& problem_;
  std::vector<uint32_t> users_, predecessors_;  // sets of commands
};

}  // namespace gpuc::ordering
