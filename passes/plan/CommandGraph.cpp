//===- CommandGraph.cpp - What must happen before what in a program ---------===//

#include "passes/plan/CommandGraph.h"

#include "passes/Passes.h"

using namespace mlir;

namespace gpuc {
namespace {

/// Since the last write: who wrote, and who has read it. Views of one buffer count as the whole of it.
struct Accesses {
  std::optional<unsigned> writer;
  SmallVector<unsigned> readers;
};

} // namespace

std::vector<plan::CommandOpInterface> commandsOf(Block &block) {
  auto range = block.getOps<plan::CommandOpInterface>();
  return {range.begin(), range.end()};
}

SmallVector<int64_t> tripCountsAround(Operation *command) {
  SmallVector<int64_t> counts;
  for (auto loop = command->getParentOfType<plan::LoopOpInterface>(); loop;
       loop = loop->getParentOfType<plan::LoopOpInterface>())
    counts.insert(counts.begin(), loop.getTripCount());
  return counts;
}

CommandGraph::CommandGraph(ArrayRef<plan::CommandOpInterface> list)
    : commands(list.begin(), list.end()), predecessors(list.size()), successors(list.size()) {
  DenseMap<const void *, Accesses> last;
  std::optional<unsigned> original; // the last command that computes nothing again
  for (unsigned index = 0; index < commands.size(); ++index) {
    std::vector<unsigned> &before = predecessors[index];
    for (Value read : commands[index].getReads()) {
      Accesses &accesses = last[plan::identityOf(plan::bufferOf(read))];
      if (accesses.writer)
        before.push_back(*accesses.writer);
      accesses.readers.push_back(index);
    }
    for (Value write : commands[index].getWrites()) {
      Accesses &accesses = last[plan::identityOf(plan::bufferOf(write))];
      if (accesses.writer)
        before.push_back(*accesses.writer);
      llvm::append_range(before, accesses.readers);
      accesses = {index, {}};
    }
    // Before what it stands behind it would free nothing.
    const bool again = commands[index]->hasAttr(kRecomputedAttr);
    if (again && original)
      before.push_back(*original);
    if (!again)
      original = index;
    llvm::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    llvm::erase(before, index);
    for (unsigned predecessor : before)
      successors[predecessor].push_back(index);
  }
}

} // namespace gpuc
