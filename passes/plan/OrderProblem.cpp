//===- OrderProblem.cpp - A block's commands as an ordering problem ---------===//

#include "passes/plan/OrderProblem.h"

#include "passes/plan/InPlaceChains.h"
#include "passes/plan/PartBuffers.h"

#include "runtime/plan/header.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gpuc {

static int64_t bytesOf(plan::AllocOp buffer) {
  return llvm::alignTo(plan::sizeInBytes(buffer), kBufferAlignment);
}

OrderProblems::OrderProblems(ModuleOp module, plan::ProgramOp program)
    : kernels_(module), homes_(iterationScopes(program)) {
  for (auto buffer : program.getBody().getOps<plan::AllocOp>())
    homes_.try_emplace(buffer, &program.getBody().front());
  program.walk([&](plan::ParallelOp parallel) { // each part has a place in these
    for (ArrayRef<plan::AllocOp> group : buffersInTurn(parallel))
      for (plan::AllocOp buffer : group)
        homes_[buffer] = &parallel.getBody().front();
  });
}

/// Those that have their place in the block, each once.
SetVector<Operation *> OrderProblems::buffersOf(plan::CommandOpInterface command, Block &block) {
  SetVector<Operation *> buffers;
  for (Value value : llvm::concat<Value>(command.getReads(), command.getWrites()))
    if (Operation *buffer = plan::bufferOf(value); homes_.lookup(buffer) == &block)
      buffers.insert(buffer);
  return buffers;
}

ordering::Problem OrderProblems::of(const CommandGraph &graph, Block &block) {
  ordering::Problem problem;
  DenseMap<Operation *, size_t> numbers;
  for (auto [index, known] : llvm::enumerate(graph.commands)) {
    plan::CommandOpInterface command = known;
    ordering::Command &entry = problem.commands.emplace_back();
    entry.predecessors.assign(graph.predecessors[index].begin(), graph.predecessors[index].end());
    for (Operation *buffer : buffersOf(command, block)) {
      auto [number, isNew] = numbers.try_emplace(buffer, problem.buffers.size());
      if (isNew)
        problem.buffers.push_back({bytesOf(cast<plan::AllocOp>(buffer))});
      entry.buffers.push_back(number->second);
    }
    if (auto loop = dyn_cast<plan::LoopOpInterface>(*command))
      entry.scratch = scratchOf(loop);
    else if (!isa<plan::ParallelOp>(block.getParentOp())) // there buffers lie over one another in turn
      entry.overlays = overlaysOf(command, numbers);
  }
  for (auto output : block.getOps<plan::OutputOp>())
    if (auto number = numbers.find(plan::bufferOf(output.getBuffer())); number != numbers.end())
      problem.buffers[number->second].to_end = true;
  return problem;
}

int64_t OrderProblems::scratchOf(plan::LoopOpInterface loop) {
  Block &block = loop.getCommands();
  const CommandGraph graph(commandsOf(block));
  const ordering::Problem problem = of(graph, block);
  if (auto parallel = dyn_cast<plan::ParallelOp>(*loop)) {
    int64_t bytes = 0, inner = 0;
    for (ArrayRef<plan::AllocOp> group : buffersInTurn(parallel))
      bytes += bytesOf(group.front()); // the largest
    for (const ordering::Command &command : problem.commands)
      inner = std::max(inner, command.scratch);
    return bytes + inner;
  }
  return ordering::peakOf(problem, ordering::givenOrder(problem));
}

/// As InPlaceChains joins them: each result over the first input that allows it.
std::vector<std::pair<size_t, size_t>>
OrderProblems::overlaysOf(Operation *command, const DenseMap<Operation *, size_t> &numbers) {
  std::vector<std::pair<size_t, size_t>> overlays;
  auto whole = [&](Value value) {
    auto buffer = value.getDefiningOp<plan::AllocOp>();
    return buffer && numbers.contains(buffer) ? buffer : plan::AllocOp();
  };
  if (auto reduce = dyn_cast<plan::AllReduceOp>(command))
    if (plan::AllocOp to = whole(reduce.getResult()), from = whole(reduce.getPart());
        to && from && to != from)
      overlays.emplace_back(numbers.lookup(to), numbers.lookup(from));
  auto launch = dyn_cast<plan::LaunchOp>(command);
  if (!launch)
    return overlays;
  auto kernel = kernels_.lookup<plan::KernelOp>(launch.getKernel());
  for (auto [result, output] : llvm::enumerate(launch.getOutputs()))
    for (Value input : launch.getInputs())
      if (plan::AllocOp to = whole(output), from = whole(input);
          to && from && to != from && plan::sizeInBytes(to) == plan::sizeInBytes(from) &&
          mayWriteOver(launch, kernel, from, result))
        overlays.emplace_back(numbers.lookup(to), numbers.lookup(from));
  return overlays;
}

} // namespace gpuc
