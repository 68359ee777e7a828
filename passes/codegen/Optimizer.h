//===- Optimizer.h - LLVM's passes over kernels -----------------------------===//
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

namespace gpuc::codegen {

/// LLVM's passes, set up once for many modules; one thread at a time. They never recognise or make a call to
/// a library, and do not vectorise: kernels are vectors, or threads, where they should be.
class Optimizer {
public:
  /// `once`: for one module of many functions. Otherwise for many, of one each.
  Optimizer(llvm::TargetMachine &machine, int optLevel, bool once = false);
  void run(llvm::Module &module);

private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager components_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
  llvm::ModulePassManager passes_;
};

} // namespace gpuc::codegen
