//===- Checkpoint.cpp - Compute values again instead of keeping them ---------===//

#include "passes/Passes.h"
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
    std::string error;
    FailureOr<CheckpointPolicy> policy = CheckpointPolicy::parse(this->policy, &getContext(), error);
    if (failed(policy)) {
      emitError(getOperation().getLoc()) << error;
      return signalPassFailure();
    }
    auto step = getOperation().lookupSymbol<func::FuncOp>("train_step");
    if (!step || policy->kind == CheckpointPolicy::Kind::none)
      return;
    if (failed(checkGradientsAreKnown(step)))
      return signalPassFailure();
    StepForward forward(step);
    FailureOr<llvm::BitVector> kept = valuesKept(*policy, forward);
    if (failed(kept))
      return signalPassFailure();
    forward.recompute(*kept);
  }
};

} // namespace
} // namespace gpuc
