//===- InPlaceChains.cpp - Buffers that lie over one another -----------------===//

#include "passes/InPlaceChains.h"

#include "passes/IterationBuffers.h"
#include "passes/codegen/Codegen.h"

using namespace mlir;

namespace gpuc {

InPlaceChains::InPlaceChains(ModuleOp module, plan::ProgramOp program, const Lifetimes &lifetimes)
    : kernels_(module), lifetimes_(lifetimes) {
  for (auto &[buffer, lifetime] : lifetimes_)
    chains_.insert(buffer);
  program.walk([&](plan::LaunchOp launch) { join(launch); });
  program.walk([&](plan::RepeatOp repeat) {
    if (repeat.getParallel())
      join(repeat);
  });
}

void InPlaceChains::join(plan::RepeatOp repeat) {
  for (ArrayRef<plan::AllocOp> group : buffersInTurn(repeat))
    for (plan::AllocOp buffer : group.drop_front())
      chains_.unionSets(group.front(), buffer);
}

/// Whether the kernel allows it, through whichever of its arguments it reads the buffer.
static bool mayOverwrite(plan::LaunchOp launch, plan::KernelOp kernel, Value input, unsigned result) {
  for (auto [argument, operand] : llvm::enumerate(launch.getInputs()))
    if (plan::bufferOf(operand) == plan::bufferOf(input) &&
        !canUpdateInPlace(kernel.getBody().front(), argument, result))
      return false;
  return true;
}

static bool isOutput(plan::AllocOp buffer) {
  return llvm::any_of(buffer->getUsers(), [](Operation *user) { return isa<plan::OutputOp>(user); });
}

void InPlaceChains::join(plan::LaunchOp launch) {
  auto kernel = kernels_.lookup<plan::KernelOp>(launch.getKernel());
  for (auto [result, output] : llvm::enumerate(launch.getOutputs()))
    for (Value input : launch.getInputs())
      if (canShare(launch, input, output) && mayOverwrite(launch, kernel, input, result)) {
        overwritten_.insert(input.getDefiningOp());
        chains_.unionSets(output.getDefiningOp(), input.getDefiningOp());
        break;
      }
}

/// Whole buffers of one size; the launch is the input's last command and the output's first, in each
/// iteration if it is repeated.
bool InPlaceChains::canShare(plan::LaunchOp launch, Value input, Value output) const {
  auto from = input.getDefiningOp<plan::AllocOp>(), to = output.getDefiningOp<plan::AllocOp>();
  if (!from || !to || from == to || plan::rangeOf(input).size != plan::rangeOf(output).size)
    return false;
  auto last = lifetimes_.find(from), first = lifetimes_.find(to);
  if (last == lifetimes_.end() || first == lifetimes_.end() || isOutput(from))
    return false;
  if (last->second.upper != first->second.lower + 1)
    return false;
  if (isa<plan::RepeatOp>(launch->getParentOp()) &&
      (last->second.scope != launch->getBlock() || first->second.scope != launch->getBlock()))
    return false;
  // Two outputs cannot lie over one input.
  return !overwritten_.contains(from);
}

} // namespace gpuc
