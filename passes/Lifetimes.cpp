//===- Lifetimes.cpp - When each buffer of a program is needed --------------===//

#include "passes/Lifetimes.h"

#include "passes/HappensBefore.h"

using namespace mlir;

namespace gpuc {
namespace {

/// For each execution the positions of the main stream between which it happens: behind the last main command
/// that precedes it, before the first that it precedes.
class Positions {
public:
  Positions(plan::ProgramOp program, const HappensBefore &order) : order(order) {
    plan::StreamOp main = *program.getBody().getOps<plan::StreamOp>().begin();
    for (unsigned index = 0; index < order.executions().size(); ++index) {
      plan::CommandOpInterface command = order.executions()[index].command;
      if (main->isProperAncestor(command))
        mainExecutions.push_back(index);
    }
    mainStream = mainExecutions.empty() ? 0 : order.executions()[mainExecutions.front()].stream;
  }

  int64_t count() const { return mainExecutions.size(); }

  Lifetime of(unsigned index) const {
    if (!mainExecutions.empty() && order.executions()[index].stream == mainStream) {
      int64_t position = llvm::lower_bound(mainExecutions, index) - mainExecutions.begin();
      return {position, position + 1};
    }
    auto first =
        llvm::partition_point(mainExecutions, [&](unsigned main) { return order.precedes(main, index); });
    auto behind =
        std::find_if(first, mainExecutions.end(), [&](unsigned main) { return order.precedes(index, main); });
    return {std::max<int64_t>(0, first - mainExecutions.begin() - 1), behind - mainExecutions.begin() + 1};
  }

private:
  const HappensBefore &order;
  std::vector<unsigned> mainExecutions; // in order
  unsigned mainStream;
};

} // namespace

int64_t positionsOf(plan::ProgramOp program) {
  HappensBefore order;
  order.addStep(program);
  return order.finish().succeeded() ? Positions(program, order).count() : 0;
}

FailureOr<Lifetimes> computeLifetimes(plan::ProgramOp program) {
  HappensBefore order;
  order.addStep(program);
  if (failed(order.finish()))
    return failure();
  Positions positions(program, order);

  Lifetimes lifetimes;
  for (auto buffer : program.getBody().getOps<plan::AllocOp>())
    lifetimes.insert({buffer, {std::numeric_limits<int64_t>::max(), 0}});
  auto extend = [&](Value value, Lifetime at) {
    auto buffer = dyn_cast<plan::AllocOp>(*plan::bufferOf(value));
    if (!buffer)
      return;
    Lifetime &lifetime = lifetimes[buffer];
    lifetime = {std::min(lifetime.lower, at.lower), std::max(lifetime.upper, at.upper)};
  };
  for (unsigned index = 0; index < order.executions().size(); ++index) {
    plan::CommandOpInterface command = order.executions()[index].command;
    for (Value value : llvm::concat<Value>(command.getReads(), command.getWrites()))
      extend(value, positions.of(index));
  }
  for (auto output : program.getBody().getOps<plan::OutputOp>())
    extend(output.getBuffer(), {positions.count(), positions.count() + 1});
  lifetimes.remove_if([](auto &entry) { return entry.second.upper == 0; });
  return lifetimes;
}

} // namespace gpuc
