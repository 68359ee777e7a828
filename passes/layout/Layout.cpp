//===- Layout.cpp - The layout that the target multiplies fastest -----------===//
//
// Contract: the results stay the same up to the order of sums, and every type outside of a function's body
// does. On CUDA, images that convolutions on tensor cores read and write lie channels last, with whatever is
// computed between them, where that moves fewer bytes than it saves (LayoutCost.h): decided for each group of
// images that hang together (LayoutGroups.h), the region of a scan being a block of its own. Transposes are
// left at the edges of a group. The host's convolutions have their channels first: those that are written
// otherwise get transposes. Weights that its loops multiply by, transposed, are pre-transposed
// (PreTransposedWeights.h).
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/Windows.h"
#include "passes/Passes.h"
#include "passes/base/Target.h"
#include "passes/layout/ChannelsFirst.h"
#include "passes/layout/ChannelsLast.h"
#include "passes/layout/LayoutCost.h"
#include "passes/layout/LayoutReport.h"
#include "passes/layout/PadProducts.h"
#include "passes/layout/PreTransposedWeights.h"

#include "dialects/plan/PlanOps.h"

#include "llvm/ADT/MapVector.h"

namespace gpuc {
#define GEN_PASS_DEF_LAYOUTPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

constexpr StringLiteral kFirst = "channels_first", kLast = "channels_last";

std::string textOf(const LayoutCost::Work &work) {
  return std::to_string(work.kernels) + " kernels and " + std::to_string(work.bytes) + " bytes";
}

std::string textOf(const LayoutCost &cost) {
  return "transposes take " + textOf(cost.left) + ", cuDNN's own " + textOf(cost.saved);
}

/// What is said of each convolution of a block, by the op.
using Verdicts = llvm::MapVector<Operation *, std::pair<StringRef, std::string>>;

class LayoutPass : public impl::LayoutPassBase<LayoutPass> {
  using LayoutPassBase::LayoutPassBase;

  void runOnOperation() override {
    FailureOr<Target> parsed = Target::parse(target, getOperation());
    if (failed(parsed))
      return signalPassFailure();
    device_ = describe(*parsed);
    SmallVector<LayoutEntry> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        layOut(function.getBody().front(), parsed->isCuda(), entries);
    if (!entries.empty())
      getOperation()->setAttr(kLayoutAttr, toAttribute(entries, &getContext()));
  }

  void layOut(Block &block, bool cuda, SmallVectorImpl<LayoutEntry> &entries) {
    transposeToChannelsFirst(block, /*poolings=*/cuda);
    if (cuda) {
      chooseLayouts(block, entries);
      padProducts(block, device_, entries);
    }
    for (auto scan : llvm::make_early_inc_range(block.getOps<ir::ScanOp>())) {
      layOut(scan.getBlock(), cuda, entries);
      if (!cuda)
        preTransposeWeights(scan, device_);
    }
  }

  void chooseLayouts(Block &block, SmallVectorImpl<LayoutEntry> &entries) {
    Verdicts verdicts;
    SmallVector<LayoutGroup> chosen;
    for (LayoutGroup &group : findLayoutGroups(block)) {
      LayoutCost cost(group, device_);
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

  static void report(Operation *convolution, const Verdicts &verdicts,
                     SmallVectorImpl<LayoutEntry> &entries) {
    LayoutEntry entry = LayoutEntry::of(convolution);
    entry.layout = kFirst;
    entry.why = "not on tensor cores";
    if (auto found = verdicts.find(convolution); found != verdicts.end())
      std::tie(entry.layout, entry.why) = found->second;
    entries.push_back(std::move(entry));
  }

  TargetDescription device_ = kHostDescription;
};

} // namespace
} // namespace gpuc
