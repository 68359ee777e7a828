// What must be live while a command runs, whatever the order.
#pragma once

#include <optional>

#include "passes/ordering/Graph.h"

namespace gpuc::ordering {

struct Cut {
  int64_t bytes = 0;  // no order has fewer live while the command runs
  std::vector<char>
      before;  // for each command whether it comes before; with these before it there are so many
};

/// The commands that come before another hold, with each, what that must follow. Of all such sets that have
/// what the command must follow, and neither it nor what follows it, one leaves the fewest bytes live: a
/// minimum cut, whose edges are the buffers that are used on both sides. Nothing if the effort did not
/// suffice.
std::optional<Cut> leastCut(const Graph& graph, size_t command, Effort& effort);

}  // namespace gpuc::ordering
