//===- StreamEvents.h - Events between commands on different streams -----------===//
#pragma once

#include "passes/plan/CommandGraph.h"

namespace gpuc {

/// Orders commands as the graph says where they stand on different streams: `streams` has that of each of its
/// commands, `main` is the one that the others are joined with at the end of each run. What is known by other
/// events already has none of its own. Uploads that have a stream of their own are left to the caller, who
/// has `main` wait for them before anything else.
void orderByEvents(const CommandGraph &graph, llvm::ArrayRef<plan::StreamOp> streams, plan::StreamOp main);

} // namespace gpuc
