//===- SyncBatchNorm.cpp - Statistics of the global batch ---------------------===//
//
// Contract: where the recipe has `sync_batch_norm`, each gpuc.batch_norm over the batch, as its leading `?`
// shows or a frontend has said, is marked with `sync`. What that means the op says itself; that rows which
// hold no sample are not counted is MaskPadding.cpp's concern.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/CountsRows.h"
#include "passes/Passes.h"
#include "passes/batch/Parts.h"

namespace gpuc {
#define GEN_PASS_DEF_SYNCBATCHNORMPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class SyncBatchNormPass : public impl::SyncBatchNormPassBase<SyncBatchNormPass> {
  void runOnOperation() override {
    bool isIdle = true;
    for (auto recipe : getOperation().getOps<ir::RecipeOp>()) {
      const bool syncs = recipe.getSyncBatchNorm().value_or(false);
      isIdle &= !syncs;
      if (syncs && failed(markNorms(recipe)))
        return signalPassFailure();
    }
    if (isIdle)
      markAllAnalysesPreserved(); // nor is the module verified again
  }

  static bool isOverTheBatch(ir::BatchNormOp norm) {
    return isDynamic(norm.getOperand().getType()) || norm->hasAttr(kHasRowsAttr);
  }

  LogicalResult markNorms(ir::RecipeOp recipe) {
    bool found = false;
    WalkResult walked = getOperation().walk([&](ir::BatchNormOp norm) -> WalkResult {
      found |= norm.getSync();
      if (norm.getSync() || !isOverTheBatch(norm))
        return WalkResult::advance();
      if (!isa<func::FuncOp>(norm->getParentOp()))
        return norm.emitOpError("stands in a loop, in which norms of several ranks cannot be one: leave out "
                                "sync_batch_norm");
      norm.setSync(true);
      found = true;
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    if (!found)
      return recipe.emitOpError(
          "has sync_batch_norm, but the model has no batch norm over the batch (in eval mode it "
          "goes by its running statistics): leave it out");
    return success();
  }
};

} // namespace
} // namespace gpuc
