//===- VerifyStage.cpp - What one stage may take for granted of the one before ===//

#include "passes/Passes.h"
#include "passes/plan/VariableUpdates.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_VERIFYSTAGEPASS
#include "passes/Passes.h.inc"

namespace {

using Verifier = LogicalResult (*)(ModuleOp, const Blame &);

LogicalResult verifyUpdates(ModuleOp module, const Blame &blame) {
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(verifyUpdates(function, blame)))
      return failure();
  return success();
}

struct VerifyStagePass : impl::VerifyStagePassBase<VerifyStagePass> {
  using VerifyStagePassBase::VerifyStagePassBase;

  void runOnOperation() override {
    Verifier verifier = llvm::StringSwitch<Verifier>(stage)
                            .Case("step", verifyStep)
                            .Case("entries", verifyEntries)
                            .Case("kernels", verifyKernels)
                            .Case("updates", verifyUpdates)
                            .Case("commands", verifyCommands)
                            .Default(nullptr);
    if (!verifier)
      getOperation().emitError("unknown stage '")
          << stage << "': step, entries, kernels, updates or commands";
    if (!verifier || failed(verifier(getOperation(), Blame(after))))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace gpuc
