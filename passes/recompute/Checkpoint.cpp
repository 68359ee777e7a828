//===- Checkpoint.cpp - Compute values again instead of keeping them ---------===//

#include "passes/Passes.h"
#include "passes/base/Entries.h"
#include "passes/base/Locations.h"
#include "passes/recompute/Policy.h"
#include "passes/recompute/Recompute.h"

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

#define GEN_PASS_DEF_CHECKPOINTPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// The values of a block that it gives as these results of the op around it.
SmallVector<Value> yielded(Block &block, ArrayRef<unsigned> results) {
  return llvm::map_to_vector(results,
                             [&](unsigned result) { return block.getTerminator()->getOperand(result); });
}

class CheckpointPass : public impl::CheckpointPassBase<CheckpointPass> {
  using CheckpointPassBase::CheckpointPassBase;

  void runOnOperation() override {
    std::string error;
    FailureOr<CheckpointPolicy> policy = CheckpointPolicy::parse(this->policy, &getContext(), error);
    if (failed(policy)) {
      emitError(getOperation().getLoc()) << error;
      return signalPassFailure();
    }
    auto step = getOperation().lookupSymbol<func::FuncOp>("train_step");
    if (!step || policy->kind == CheckpointPolicy::Kind::none)
      return;
    bool hasBackward = false;
    step.walk([&](Operation *op) { hasBackward |= isBackward(op->getLoc()); });
    if (!hasBackward) {
      emitError(step.getLoc())
          << "what belongs to gradients is known by locations, and @train_step has none: give "
             "gpuc-checkpoint text with them (gpuc-opt --mlir-print-debuginfo, --emit without "
             "--no-locations)";
      return signalPassFailure();
    }
    for (unsigned result = 0; result < step.getNumResults(); ++result)
      if (auto name = step.getResultAttrOfType<StringAttr>(result, kNameAttr); name && name == "loss_sum")
        visit(step.getBody().front(), result, *policy);
  }

  static void visit(Block &block, ArrayRef<unsigned> results, const CheckpointPolicy &policy) {
    ForwardPass forward(block, yielded(block, results));
    const DenseSet<Value> kept = valuesKept(policy, forward);
    recompute(forward, [&](Value value) { return kept.contains(value); });
    for (const ForwardPass::Loop &loop : forward.loops())
      visit(cast<ir::ScanOp>(loop.op).getBlock(), loop.results, policy);
  }
};

} // namespace
} // namespace gpuc
