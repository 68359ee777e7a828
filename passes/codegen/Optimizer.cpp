//===- Optimizer.cpp - LLVM's passes over kernels ---------------------------===//

#include "passes/codegen/Optimizer.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DivRemPairs.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
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
  // The default pipeline but for what looks across functions, part of which cannot run twice, and for what
  // makes vectors: half the time.
  llvm::FunctionPassManager passes =
      builder_.buildFunctionSimplificationPipeline(level, llvm::ThinOrFullLTOPhase::None);
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(level.getSpeedupLevel())));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::InstSimplifyPass());
  passes.addPass(llvm::DivRemPairsPass());
  passes.addPass(
      llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().hoistCommonInsts(true).sinkCommonInsts(true)));
  passes_.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
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
