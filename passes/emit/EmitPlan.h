//===- EmitPlan.h - Write a placed plan as a file ---------------------------===//
#pragma once

#include "passes/codegen/Codegen.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace gpuc {

struct EmitOptions {
  CodegenOptions codegen;              // of the kernels' machine code
  std::optional<uint64_t> defaultSeed; // instead of the module's gpuc.seed
};

/// Compiles the kernels of a placed plan (see plan-place-buffers) for its target and serialises everything as
/// a plan file (runtime/plan/plan.fbs). The same module and options give the same bytes. Errors are
/// diagnostics.
mlir::FailureOr<std::string> emitPlan(mlir::ModuleOp module, const EmitOptions &options);

} // namespace gpuc
