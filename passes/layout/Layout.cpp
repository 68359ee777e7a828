//===- Layout.cpp - The layout that the target multiplies fastest -----------===//
//
// Contract: the results stay the same up to the order of sums, and every type outside of a function's body
// does. On CUDA, images that tensor cores multiply lie channels last where that pays
// (conv/ChooseLayouts.cpp), the region of a scan being a block of its own, and products get the extents that
// are multiplied fastest (PadProducts.cpp). The host has channels first: what is written otherwise gets
// transposes, and what stands between transposes does without (CancelTransposes.cpp). Weights that its loops
// multiply by, transposed, are pre-transposed (PreTransposedWeights.cpp).
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Decisions.h"
#include "passes/base/Target.h"
#include "passes/layout/LayoutSteps.h"
#include "passes/layout/conv/Channels.h"

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
    SmallVector<Attribute> decisions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        layOut(function.getBody().front(), parsed->isCuda(), decisions);
    if (!decisions.empty())
      getOperation()->setAttr(kLayoutAttr, ArrayAttr::get(&getContext(), decisions));
  }

  void layOut(Block &block, bool cuda, SmallVectorImpl<Attribute> &decisions) {
    transposeToChannelsFirst(block, /*poolings=*/cuda);
    if (cuda) {
      chooseLayouts(block, device_, decisions);
      padProducts(block, device_, decisions);
    } else {
      cancelTransposes(block);
    }
    for (auto scan : llvm::make_early_inc_range(block.getOps<ir::ScanOp>())) {
      layOut(scan.getBlock(), cuda, decisions);
      if (!cuda)
        preTransposeWeights(scan, device_);
    }
  }

  TargetDescription device_ = kHostDescription;
};

} // namespace
} // namespace gpuc
