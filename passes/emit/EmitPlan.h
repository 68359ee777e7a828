//===- EmitPlan.h - Write a placed plan as a file ---------------------------===//
#pragma once

#include "passes/codegen/Codegen.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>

namespace gpuc {

class HostCompiler;

/// Begins to compile what gpuc-fuse made of a train step for a host, which most of the plan's kernels will
/// be: LLVM is at work while the plan is made. Null if there is nothing to begin with.
std::unique_ptr<HostCompiler> beginKernels(mlir::ModuleOp trainStep, const CodegenOptions &options);

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
