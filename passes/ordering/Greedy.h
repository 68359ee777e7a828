// List scheduling: of the commands whose predecessors have run one goes next, in time near-linear in the
// problem.
#pragma once

#include "passes/ordering/Graph.h"

namespace gpuc::ordering {

enum class Choice {
  leaves_least,  // the one that leaves the fewest bytes live; among equals the one that came first
  frees_most,    // the same, if it leaves fewer than there are; else the one that came first
};

Order scheduleGreedily(const Graph& graph, Choice choice);

}  // namespace gpuc::ordering
