//===- ChooseLayouts.cpp - Channels last, where that pays -------------------===//

#include "passes/layout/conv/ChooseLayouts.h"

#include "dialects/gpuc/Convolutions.h"
#include "passes/layout/conv/ChannelsLast.h"
#include "passes/layout/conv/LayoutCost.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace gpuc {

static constexpr StringLiteral kFirst = "channels_first", kLast = "channels_last";

static std::string textOf(const LayoutCost::Work &work) {
  return std::to_string(work.kernels) + " kernels and " + std::to_string(work.bytes) + " bytes";
}

static std::string textOf(const LayoutCost &cost) {
  return "transposes take " + textOf(cost.left) + ", cuDNN's own " + textOf(cost.saved);
}

/// What is said of each convolution of a block, by the op.
using Verdicts = llvm::MapVector<Operation *, std::pair<StringRef, std::string>>;

static void report(Operation *convolution, const Verdicts &verdicts, SmallVectorImpl<LayoutEntry> &entries) {
  LayoutEntry entry = LayoutEntry::of(convolution);
  entry.layout = kFirst;
  entry.why = "not on tensor cores";
  if (auto found = verdicts.find(convolution); found != verdicts.end())
    std::tie(entry.layout, entry.why) = found->second;
  entries.push_back(std::move(entry));
}

void chooseLayouts(Block &block, const TargetDescription &device, SmallVectorImpl<LayoutEntry> &entries) {
  Verdicts verdicts;
  SmallVector<LayoutGroup> chosen;
  for (LayoutGroup &group : findLayoutGroups(block)) {
    LayoutCost cost(group, device);
    for (Operation *convolution : group.convolutions)
      verdicts[convolution] = {cost.pays() ? kLast : kFirst, textOf(cost)};
    if (cost.pays())
      chosen.push_back(std::move(group));
  }
  for (Operation &op : block)
    if (ir::isConvolution(&op))
      report(&op, verdicts, entries);
  transposeToChannelsLast(block, chosen);
}

} // namespace gpuc
