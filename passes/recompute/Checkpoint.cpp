//===- Checkpoint.cpp - Compute values again instead of keeping them ---------===//

#include "passes/Passes.h"
#include "passes/base/WrittenAgain.h"
#include "passes/recompute/Policy.h"
#include "passes/recompute/StepForward.h"

namespace gpuc {

#define GEN_PASS_DEF_CHECKPOINTPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class CheckpointPass : public impl::CheckpointPassBase<CheckpointPass> {
  using CheckpointPassBase::CheckpointPassBase;

  void runOnOperation() override {
    FailureOr<CheckpointPolicy> taken = takePolicy(policy, getOperation());
    if (failed(taken))
      return signalPassFailure();
    auto step = getOperation().lookupSymbol<func::FuncOp>("train_step");
    if (!step || taken->kind == CheckpointPolicy::Kind::none)
      return markAllAnalysesPreserved(); // nor is the module verified again
    if (failed(checkGradientsAreKnown(step)))
      return signalPassFailure();
    apply(choiceOf(*taken, step), step);
  }

  static StepChoice choiceOf(const CheckpointPolicy &policy, func::FuncOp step) {
    if (!policy.dropsWholes() || !writesAgain(step))
      return {valuesKept(policy, StepForward(step))};
    OwningOpRef<ModuleOp> copy = step->getParentOfType<ModuleOp>().clone();
    auto readingFirst = copy->lookupSymbol<func::FuncOp>(step.getName());
    readFirstWritten(readingFirst, [](Value, Operation *) { return true; });
    return {valuesKept(policy, StepForward(readingFirst)), /*slicesInTurn=*/false,
            /*readsFirstWritten=*/true};
  }
};

} // namespace
} // namespace gpuc
