//===- WholeGradients.cpp - Gradients that are live together ------------------===//
//
// Updates that need nothing but their own gradient follow it at once, and few gradients are live at a time. A
// norm over all of them, or a test of all of them, has each wait for the last. What that costs is reckoned on
// this plan, in this order: the step's peak as it is, less the peak with gradients that end early, or are not
// stored at all since their products would update weights with them.
//
//===----------------------------------------------------------------------===//

#include "passes/report/WholeGradients.h"

#include "passes/base/Decisions.h"
#include "passes/report/Peak.h"
#include "passes/updates/Updates.h"

using namespace mlir;

namespace gpuc {
namespace {

bool isGradient(plan::AllocOp buffer) { return buffer.getCategory() == plan::Category::gradient; }

/// The positions behind the last command of the main stream that writes each buffer; 0 of what would not be
/// stored.
DenseMap<Operation *, int64_t> endsOfWriting(plan::ProgramOp program) {
  DenseMap<Operation *, int64_t> ends;
  auto streams = program.getBody().getOps<plan::StreamOp>();
  if (streams.empty())
    return ends;
  int64_t position = 0;
  for (auto command : (*streams.begin()).getBody().getOps<plan::CommandOpInterface>()) {
    position += positionsOf(command);
    auto product = dyn_cast<plan::ProductOpInterface>(*command);
    const bool isStored = !product || !canUpdateInProduct(product);
    for (Value written : command.getWrites())
      ends[plan::bufferOf(written)] = isStored ? position : 0;
  }
  return ends;
}

/// With each gradient ending behind the command that follows the last one to write it.
Lifetimes endEarly(Lifetimes lifetimes, const DenseMap<Operation *, int64_t> &ends) {
  for (auto &[buffer, lifetime] : lifetimes)
    if (auto end = ends.find(buffer); isGradient(buffer) && end != ends.end())
      lifetime.upper = end->second == 0 ? lifetime.lower : std::min(lifetime.upper, end->second + 1);
  return lifetimes;
}

Lifetimes onlyGradients(Lifetimes lifetimes) {
  lifetimes.remove_if([](auto &entry) { return !isGradient(entry.first); });
  return lifetimes;
}

int64_t mostBytes(const Lifetimes &lifetimes, int64_t positions) {
  return liveBytes(lifetimes, positions).peak();
}

} // namespace

FailureOr<llvm::json::Object> wholeGradientsOf(ModuleOp module) {
  llvm::json::Array why;
  if (auto entries = module->getAttrOfType<ArrayAttr>(kWholeGradientsAttr))
    for (auto entry : entries.getAsRange<StringAttr>())
      why.push_back(entry.getValue());
  int64_t bytes = 0, saved = 0;
  if (auto step = module.lookupSymbol<plan::ProgramOp>("train_step")) {
    FailureOr<Lifetimes> lifetimes = computeLifetimes(step);
    if (failed(lifetimes))
      return failure();
    const int64_t positions = positionsOf(step) + 1;
    bytes = mostBytes(onlyGradients(*lifetimes), positions);
    if (!why.empty())
      saved =
          mostBytes(*lifetimes, positions) - mostBytes(endEarly(*lifetimes, endsOfWriting(step)), positions);
    for (auto other : module.getOps<plan::ProgramOp>()) // which the arena must hold, too
      if (other != step)
        saved = std::min(saved, std::max<int64_t>(0, *step.getPeakBytes() - *other.getPeakBytes()));
  }
  return llvm::json::Object{{"bytes", bytes}, {"costs_bytes", saved}, {"why", std::move(why)}};
}

} // namespace gpuc
