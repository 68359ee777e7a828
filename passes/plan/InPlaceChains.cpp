//===- InPlaceChains.cpp - Buffers that lie over one another -----------------===//

#include "passes/plan/InPlaceChains.h"

#include "passes/codegen/Codegen.h"
#include "passes/plan/PartBuffers.h"

using namespace mlir;

namespace gpuc {

InPlaceChains::InPlaceChains(ModuleOp module, plan::ProgramOp program, const Lifetimes &lifetimes)
    : kernels_(module) {
  for (auto output : program.getBody().getOps<plan::OutputOp>())
    outputs_.insert(output.getBuffer());
  for (auto &[buffer, lifetime] : lifetimes)
    chains_.insert(buffer);
  program.walk([&](plan::LaunchOp launch) { join(launch, lifetimes); });
  program.walk([&](plan::AllReduceOp reduce) { join(reduce, lifetimes); });
  program.walk([&](plan::ParallelOp parallel) { join(parallel); });
}

void InPlaceChains::join(plan::ParallelOp parallel) {
  for (ArrayRef<plan::AllocOp> group : buffersInTurn(parallel))
    for (plan::AllocOp buffer : group.drop_front())
      chains_.unionSets(group.front(), buffer);
}

bool mayWriteOver(plan::LaunchOp launch, plan::KernelOp kernel, plan::AllocOp input, unsigned result) {
  return llvm::all_of(llvm::enumerate(launch.getInputs()), [&](auto read) {
    return plan::bufferOf(read.value()) != input ||
           canUpdateInPlace(kernel.getBody().front(), read.index(), result);
  });
}

namespace {
/// What a command reads over which it may write, if it writes what is as large.
class Inputs {
public:
  Inputs(Operation *command, ValueRange inputs, const Lifetimes &lifetimes, const DenseSet<Value> &outputs)
      : command_(command) {
    for (Value input : inputs) {
      auto buffer = input.getDefiningOp<plan::AllocOp>();
      auto lifetime = buffer ? lifetimes.find(buffer) : lifetimes.end();
      if (lifetime != lifetimes.end() && !outputs.contains(input) && isOfThisIteration(lifetime->second))
        ending_[{lifetime->second.upper, plan::sizeInBytes(buffer)}].push_back(buffer);
    }
  }

  /// Whole buffers of its size; the command is their last command and the output's first, in each iteration
  /// if it is repeated.
  ArrayRef<plan::AllocOp> endingWhere(const Lifetime &output, int64_t bytes) const {
    auto buffers = ending_.find({output.lower + 1, bytes});
    return buffers != ending_.end() && isOfThisIteration(output) ? buffers->second
                                                                 : ArrayRef<plan::AllocOp>();
  }

private:
  bool isOfThisIteration(const Lifetime &lifetime) const {
    return !isa<plan::LoopOpInterface>(command_->getParentOp()) || lifetime.scope == command_->getBlock();
  }

  Operation *command_;
  DenseMap<std::pair<int64_t, int64_t>, SmallVector<plan::AllocOp, 1>> ending_; ///< By end and bytes.
};
} // namespace

void InPlaceChains::join(plan::LaunchOp launch, const Lifetimes &lifetimes) {
  auto kernel = kernels_.lookup<plan::KernelOp>(launch.getKernel());
  const Inputs inputs(launch, launch.getInputs(), lifetimes, outputs_);
  for (auto [result, output] : llvm::enumerate(launch.getOutputs())) {
    auto to = output.getDefiningOp<plan::AllocOp>();
    auto lifetime = to ? lifetimes.find(to) : lifetimes.end();
    if (lifetime == lifetimes.end())
      continue;
    for (plan::AllocOp from : inputs.endingWhere(lifetime->second, plan::sizeInBytes(to)))
      // Two outputs cannot lie over one input.
      if (from != to && !overwritten_.contains(from) && mayWriteOver(launch, kernel, from, result)) {
        overwritten_.insert(from);
        chains_.unionSets(to, from);
        break;
      }
  }
}

void InPlaceChains::join(plan::AllReduceOp reduce, const Lifetimes &lifetimes) {
  auto to = reduce.getResult().getDefiningOp<plan::AllocOp>();
  auto lifetime = to ? lifetimes.find(to) : lifetimes.end();
  if (lifetime == lifetimes.end())
    return;
  const Inputs inputs(reduce, reduce.getPart(), lifetimes, outputs_);
  for (plan::AllocOp from : inputs.endingWhere(lifetime->second, plan::sizeInBytes(to)))
    if (from != to && overwritten_.insert(from).second)
      chains_.unionSets(to, from);
}

} // namespace gpuc
