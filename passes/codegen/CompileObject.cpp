//===- CompileObject.cpp - From LLVM IR to a relocatable object -------------===//

#include "passes/codegen/HostMachine.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

using namespace mlir;

namespace gpuc::codegen {

/// No function may be turned into, or taken for, one of a C library: there is none at run time.
static void prepare(llvm::Module &module, llvm::TargetMachine &machine, int vectorBytes) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // CPUs with 64-byte vectors are tuned for 32; our loops are written for the full width.
    function.addFnAttr("prefer-vector-width", std::to_string(8 * vectorBytes));
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
  }
}

static llvm::OptimizationLevel optimizationLevel(int level) {
  switch (level) {
  case 0:
    return llvm::OptimizationLevel::O0;
  case 1:
    return llvm::OptimizationLevel::O1;
  case 2:
    return llvm::OptimizationLevel::O2;
  default:
    return llvm::OptimizationLevel::O3;
  }
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, int optLevel) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false; // loops are vectors already, where they should be
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::TargetLibraryInfoImpl libraries(machine.getTargetTriple());
  libraries.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(libraries); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::OptimizationLevel level = optimizationLevel(optLevel);
  llvm::ModulePassManager passes =
      optLevel == 0 ? builder.buildO0DefaultPipeline(level) : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}

FailureOr<std::string> compileToObject(llvm::Module &module, llvm::TargetMachine &machine, int optLevel,
                                       int vectorBytes, std::string &error) {
  prepare(module, machine, vectorBytes);
  llvm::raw_string_ostream complaint(error);
  if (llvm::verifyModule(module, &complaint))
    return failure();
  optimize(module, machine, optLevel);
  SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine.addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "LLVM cannot write an object for " + machine.getTargetTriple().str();
    return failure();
  }
  emission.run(module);
  return std::string(object.begin(), object.end());
}

} // namespace gpuc::codegen
