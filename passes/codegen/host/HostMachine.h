//===- HostMachine.h - LLVM's side of a host target -------------------------===//
#pragma once

#include "passes/codegen/Optimizer.h"
#include "passes/codegen/host/HostCode.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

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

/// From LLVM IR to a relocatable object; for many modules, one thread at a time.
class ObjectCompiler {
public:
  ~ObjectCompiler();
  /// Null, with the reason, if LLVM lacks the target.
  static std::unique_ptr<ObjectCompiler> create(const HostTarget &target, int optLevel, std::string &error);
  std::string compile(llvm::Module &module);

private:
  class Emission;
  ObjectCompiler(std::unique_ptr<llvm::TargetMachine> machine, int optLevel, int vectorBytes);

  std::unique_ptr<llvm::TargetMachine> machine_;
  Optimizer optimizer_;
  std::unique_ptr<Emission> emission_;
  int vectorBytes_;
};

/// Links objects into a shared one that needs no other.
mlir::FailureOr<std::string> linkSharedObject(llvm::ArrayRef<std::string> objects, std::string &error);

} // namespace gpuc::codegen
