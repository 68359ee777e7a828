//===- HostMachine.h - LLVM's side of a host target -------------------------===//
#pragma once

#include "passes/codegen/Codegen.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace gpuc::codegen {

/// LLVM's code generator for `target`, without FMA contraction. Null, with the reason, if LLVM lacks the
/// target.
std::unique_ptr<llvm::TargetMachine> createMachine(const HostTarget &target, int optLevel,
                                                   std::string &error);

/// Rewrites what kernels are emitted in (func, scf, arith, math, vector) to the LLVM dialect.
mlir::LogicalResult lowerToLLVMDialect(mlir::ModuleOp module);

/// Optimises without ever recognising or making a call to a library, and without vectorising: kernels are
/// vectors, or threads, where they should be.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, int optLevel);

/// Optimises and gives a relocatable object.
mlir::FailureOr<std::string> compileToObject(llvm::Module &module, llvm::TargetMachine &machine, int optLevel,
                                             int vectorBytes, std::string &error);

/// Links one object into a shared one that needs no other.
mlir::FailureOr<std::string> linkSharedObject(llvm::StringRef object, std::string &error);

} // namespace gpuc::codegen
