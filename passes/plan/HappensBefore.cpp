//===- HappensBefore.cpp - The order that streams and events guarantee ------===//
//
// Each execution has a vector clock: for each stream, the last execution there that is known to have ended.
// It is the maximum of the clocks of its direct predecessors, so one walk in topological order computes all
// of them.
//
// A repeat without events inside is one execution: its iterations follow one another, and nothing of another
// stream is ordered between them. So the time that this takes does not depend on their number.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/HappensBefore.h"

using namespace mlir;

namespace gpuc {

bool hasEvents(plan::RepeatOp repeat) {
  return repeat.getBody()
      .walk([](Operation *op) { return WalkResult(failure(isa<plan::RecordOp, plan::WaitOp>(op))); })
      .wasInterrupted();
}

unsigned HappensBefore::streamNumber(StringRef name) {
  auto [entry, inserted] = streams.try_emplace(name, streams.size());
  if (inserted)
    lastOnStream.push_back(std::nullopt);
  return entry->second;
}

/// Of commands, and of clocks, which have an entry for each stream.
static constexpr size_t kMostExecutions = 1 << 22, kMostClocks = 1 << 26;

LogicalResult HappensBefore::addStep(plan::ProgramOp program) {
  if (currentProgram != program) {
    currentProgram = program;
    barrier.clear();
    for (std::optional<unsigned> last : lastOnStream)
      if (last)
        barrier.push_back(*last);
  }
  SmallVector<int64_t> iterations;
  if (program.getBody().getOps<plan::StreamOp>().empty() &&
      failed(addBlock(program.getBody().front(), streamNumber(""), iterations)))
    return failure();
  for (auto stream : program.getBody().getOps<plan::StreamOp>())
    if (failed(addBlock(stream.getBody().front(), streamNumber(stream.getName()), iterations)))
      return failure();
  ++steps;
  return success();
}

LogicalResult HappensBefore::addBlock(Block &block, unsigned stream, SmallVector<int64_t> &iterations) {
  for (auto command : block.getOps<plan::CommandOpInterface>()) {
    if (all.size() == kMostExecutions)
      return command->emitOpError("comes after ")
             << kMostExecutions
             << " others, each iteration with events in it counted: that is more than can be proven";
    auto repeat = dyn_cast<plan::RepeatOp>(*command);
    if (!repeat || !hasEvents(repeat)) {
      addExecution(command, stream, iterations);
      continue;
    }
    iterations.push_back(0);
    for (int64_t count = repeat.getCount(); iterations.back() < count; ++iterations.back())
      if (failed(addBlock(repeat.getBody().front(), stream, iterations)))
        return failure();
    iterations.pop_back();
  }
  return success();
}

void HappensBefore::addExecution(plan::CommandOpInterface command, unsigned stream,
                                 ArrayRef<int64_t> iterations) {
  unsigned index = all.size();
  all.push_back({command, stream, steps, llvm::to_vector(iterations)});
  SmallVector<unsigned> &before = predecessors.emplace_back();
  std::optional<unsigned> &last = lastOnStream[stream];
  positions.push_back(last ? positions[*last] + 1 : 1);
  if (last)
    before.push_back(*last);
  last = index;
  llvm::append_range(before, barrier);
  if (auto record = dyn_cast<plan::RecordOp>(*command))
    records[record.getEvent()].push_back(index);
  if (auto wait = dyn_cast<plan::WaitOp>(*command))
    waits[wait.getEvent()].push_back(index);
}

LogicalResult HappensBefore::finish() {
  // The n-th execution of a wait follows execution n - distance of the record. Each wait op counts for
  // itself.
  for (auto &[event, executions] : waits) {
    DenseMap<Operation *, int64_t> executed;
    for (unsigned index : executions) {
      auto wait = cast<plan::WaitOp>(*all[index].command);
      int64_t record = executed[wait]++ - static_cast<int64_t>(wait.getDistance());
      const std::vector<unsigned> &recorded = records[event];
      if (record < 0)
        continue;
      if (record < static_cast<int64_t>(recorded.size()))
        predecessors[index].push_back(recorded[record]);
      else if (recorded.empty())
        return wait.emitOpError("waits for an event that nothing records");
    }
  }

  std::vector<SmallVector<unsigned>> successors(all.size());
  std::vector<unsigned> waiting(all.size());
  for (unsigned index = 0; index < all.size(); ++index) {
    waiting[index] = predecessors[index].size();
    for (unsigned before : predecessors[index])
      successors[before].push_back(index);
  }
  for (unsigned index = 0; index < all.size(); ++index)
    if (waiting[index] == 0)
      topological.push_back(index);
  for (size_t next = 0; next < topological.size(); ++next)
    for (unsigned successor : successors[topological[next]])
      if (--waiting[successor] == 0)
        topological.push_back(successor);
  if (topological.size() < all.size()) {
    for (unsigned index = 0; index < all.size(); ++index)
      if (waiting[index] != 0 && isa<plan::WaitOp>(*all[index].command))
        return all[index].command->emitOpError("can never return: what it waits for comes behind it");
  }

  if (all.size() * streams.size() > kMostClocks)
    return all.back().command->emitOpError("is one of ")
           << all.size() << " executions on " << streams.size() << " streams: more than can be proven";
  clocks.assign(all.size(), SmallVector<int64_t>(streams.size(), 0));
  for (unsigned index : topological) {
    for (unsigned before : predecessors[index])
      for (unsigned stream = 0; stream < streams.size(); ++stream)
        clocks[index][stream] = std::max(clocks[index][stream], clocks[before][stream]);
    clocks[index][all[index].stream] = positions[index];
  }
  return success();
}

} // namespace gpuc
