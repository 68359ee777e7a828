//===- CommandGraph.h - What must happen before what in a program -----------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// The commands of a program in one list, and for each of them which others it must follow: it reads what
/// they write, or writes what they read or write.
struct CommandGraph {
  std::vector<plan::CommandOpInterface> commands;
  std::vector<std::vector<unsigned>> predecessors; // sorted, without duplicates
  std::vector<std::vector<unsigned>> successors;

  explicit CommandGraph(llvm::ArrayRef<plan::CommandOpInterface> commands);
};

/// The commands of a block, in order; those inside a plan.repeat stay inside.
std::vector<plan::CommandOpInterface> commandsOf(mlir::Block &block);

/// How often each loop around the command repeats, outermost first.
llvm::SmallVector<int64_t> tripCountsAround(mlir::Operation *command);

} // namespace gpuc
