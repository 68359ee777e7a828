//===- EmitParts.h - What the writer of a plan file asks of others -----------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "passes/emit/EmitPlan.h"

#include "runtime/plan/plan_generated.h"

namespace gpuc {

/// A plan.kernel as machine code: its symbol, and what every launch of it says of how it is cut, or the
/// product whose update it is.
struct KernelCode {
  std::string symbol;
  fb::LaunchT launch;
  fb::UpdateT update;
};

/// Compiles every plan.kernel of the module for the module's plan.target: the file gets target, libraries and
/// code. Errors are diagnostics at the kernel, or at the module if the target is unknown.
mlir::FailureOr<llvm::DenseMap<mlir::Operation *, KernelCode>>
compileKernels(mlir::ModuleOp module, const EmitOptions &options, fb::PlanT &file);

/// Whether the names of the plan, its variables, programs, inputs and outputs are such as runtime/plan/
/// reads. An error stands where the name does.
mlir::LogicalResult checkNames(mlir::ModuleOp module);

fb::DataType dataTypeOf(mlir::Type element);

/// Writes a buffer, or a view of one, as an operand; null of null.
using EmitOperand = llvm::function_ref<std::unique_ptr<fb::OperandT>(mlir::Value)>;

/// The entry of a command that has a table of operands (runtime/plan/roles.h).
fb::WorkUnion emitLibraryCommand(mlir::Operation *command, EmitOperand operand);

} // namespace gpuc
