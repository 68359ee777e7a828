//===- Layout.cpp - The layout that the target multiplies fastest -----------===//
//
// Contract: the results stay the same up to the order of sums, and every type outside of a function's body
// does. On CUDA, images that tensor cores multiply lie channels last where that pays (conv/ChooseLayouts.h),
// the region of a scan being a block of its own, and products get the extents that are multiplied fastest
// (PadProducts.h). The host has channels first: what is written otherwise gets transposes. Weights that its
// loops multiply by, transposed, are pre-transposed (PreTransposedWeights.h).
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Target.h"
#include "passes/layout/LayoutReport.h"
#include "passes/layout/PadProducts.h"
#include "passes/layout/PreTransposedWeights.h"
#include "passes/layout/conv/ChannelsFirst.h"
#include "passes/layout/conv/ChooseLayouts.h"

#include "dialects/plan/PlanOps.h"

namespace gpuc {
#define GEN_PASS_DEF_LAYOUTPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

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
      chooseLayouts(block, device_, entries);
      padProducts(block, device_, entries);
    }
    for (auto scan : llvm::make_early_inc_range(block.getOps<ir::ScanOp>())) {
      layOut(scan.getBlock(), cuda, entries);
      if (!cuda)
        preTransposeWeights(scan, device_);
    }
  }

  TargetDescription device_ = kHostDescription;
};

} // namespace
} // namespace gpuc
