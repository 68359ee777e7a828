//===- HostMachine.h - LLVM's side of a host target -------------------------===//
#pragma once

#include "passes/codegen/Codegen.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

namespace gpuc::codegen {

/// LLVM's code generator for `target`, without FMA contraction. Null, with the reason, if LLVM lacks the
/// target.
std::unique_ptr<llvm::TargetMachine> createMachine(const HostTarget &target, int optLevel,
                                                   std::string &error);

/// Rewrites what kernels are emitted in (func, scf, arith, math, vector) to the LLVM dialect.
class KernelLowering {
public:
  explicit KernelLowering(mlir::MLIRContext *context);
  mlir::LogicalResult run(mlir::ModuleOp module) const;

private:
  mlir::LLVMTypeConverter types_;
  mlir::FrozenRewritePatternSet loops_, rest_;
};

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

/// From LLVM IR to a relocatable object; for many modules, one thread at a time.
class ObjectCompiler {
public:
  /// Null, with the reason, if LLVM lacks the target.
  static std::unique_ptr<ObjectCompiler> create(const HostTarget &target, int optLevel, std::string &error);
  mlir::FailureOr<std::string> compile(llvm::Module &module, std::string &error);

private:
  ObjectCompiler(std::unique_ptr<llvm::TargetMachine> machine, int optLevel, int vectorBytes)
      : machine_(std::move(machine)), optimizer_(*machine_, optLevel), vectorBytes_(vectorBytes) {}

  std::unique_ptr<llvm::TargetMachine> machine_;
  Optimizer optimizer_;
  int vectorBytes_;
};

/// Links objects into a shared one that needs no other.
mlir::FailureOr<std::string> linkSharedObject(llvm::ArrayRef<std::string> objects, std::string &error);

} // namespace gpuc::codegen
