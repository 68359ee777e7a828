//===- Optimizer.cpp - LLVM's passes over kernels ---------------------------===//

#include "passes/codegen/Optimizer.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace gpuc::codegen {

static llvm::OptimizationLevel optimizationLevel(int level) {
  switch (level) {
  case 1:
    return llvm::OptimizationLevel::O1;
  case 2:
    return llvm::OptimizationLevel::O2;
  default:
    return llvm::OptimizationLevel::O3;
  }
}

static llvm::PipelineTuningOptions tuning() {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false; // loops are vectors already, where they should be
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  return tuning;
}

/// Turned around, so that what does not change leaves them.
static llvm::LoopPassManager hoisting() {
  llvm::LoopPassManager loops;
  loops.addPass(llvm::LoopRotatePass());
  loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  return loops;
}

/// Loops of more iterations stay loops: of 196, a sum over 112x112 was 2,446 instructions, and no faster.
constexpr unsigned kMostUnrolled = 16;

static llvm::LoopUnrollOptions unrolling(llvm::OptimizationLevel level) {
  return llvm::LoopUnrollOptions(level.getSpeedupLevel()).setFullUnrollMaxCount(kMostUnrolled);
}

/// Of loops of known length, to straight code.
static llvm::LoopUnrollPass unrollingWhole(llvm::OptimizationLevel level) {
  return llvm::LoopUnrollPass(
      unrolling(level).setPartial(false).setRuntime(false).setUpperBound(false).setPeeling(false));
}

/// What a kernel's function, loops around straight code, gains by: the default pipeline has some fifty passes
/// behind one another, for code of all kinds, most of which find nothing in a kernel, and takes twice the
/// time for the same speed.
static llvm::FunctionPassManager kernelPipeline(llvm::OptimizationLevel level) {
  auto onLoops = [](llvm::LoopPassManager loops, bool memory) {
    return llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/memory);
  };
  llvm::FunctionPassManager passes;
  // What is emitted twice, as addresses are, once.
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(onLoops(hoisting(), /*memory=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(unrollingWhole(level));
  // Loads that unrolled iterations repeat.
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::LoopUnrollPass(unrolling(level)));
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager last;
  last.addPass(llvm::LICMPass(llvm::LICMOptions()));
  last.addPass(llvm::LoopDeletionPass());
  passes.addPass(onLoops(std::move(last), /*memory=*/true));
  passes.addPass(
      llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().hoistCommonInsts(true).sinkCommonInsts(true)));
  return passes;
}

Optimizer::Optimizer(llvm::TargetMachine &machine, int optLevel, bool once) : builder_(&machine, tuning()) {
  llvm::TargetLibraryInfoImpl libraries(machine.getTargetTriple());
  libraries.disableAllFunctions();
  functions_.registerPass([&] { return llvm::TargetLibraryAnalysis(libraries); });
  builder_.registerModuleAnalyses(modules_);
  builder_.registerCGSCCAnalyses(components_);
  builder_.registerFunctionAnalyses(functions_);
  builder_.registerLoopAnalyses(loops_);
  builder_.crossRegisterProxies(loops_, functions_, components_, modules_);
  if (optLevel == 0)
    return;
  llvm::OptimizationLevel level = optimizationLevel(optLevel);
  if (once) {
    passes_ = builder_.buildPerModuleDefaultPipeline(level);
    return;
  }
  passes_.addPass(llvm::createModuleToFunctionPassAdaptor(kernelPipeline(level)));
}

void Optimizer::run(llvm::Module &module) {
  passes_.run(module, modules_);
  // What is known of this module is not to be taken for the next one's.
  modules_.clear();
  components_.clear();
  functions_.clear();
  loops_.clear();
}

} // namespace gpuc::codegen
