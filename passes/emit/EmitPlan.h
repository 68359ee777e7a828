//===- EmitPlan.h - Write a placed plan as a file ---------------------------===//
#pragma once

#include "passes/codegen/Codegen.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>

namespace gpuc {

class HostCompiler;

/// Compiles kernels for a target of passes (Target.h) while the plan is made; null of one that is no host.
std::unique_ptr<HostCompiler> hostCompilerFor(llvm::StringRef target, const CodegenOptions &options);
/// Begins to compile what gpuc-fuse made of a function or a module, which most of the plan's kernels will be.
void beginKernels(mlir::Operation *fused, HostCompiler &compiler);

struct EmitOptions {
  CodegenOptions codegen;              // of the kernels' machine code
  std::optional<uint64_t> defaultSeed; // instead of the module's gpuc.seed
  HostCompiler *begun = nullptr;       // with the same codegen, if kernels were begun with
};

/// Compiles the kernels of a placed plan (see plan-place-buffers) for its target and serialises everything as
/// a plan file (runtime/plan/plan.fbs). The same module and options give the same bytes. Errors are
/// diagnostics.
mlir::FailureOr<std::string> emitPlan(mlir::ModuleOp module, const EmitOptions &options);

} // namespace gpuc
