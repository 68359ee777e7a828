//===- EmitLibraryCommand.h - Commands of libraries in the plan file --------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "runtime/plan/plan_generated.h"

namespace gpuc {

fb::DataType dataTypeOf(mlir::Type element);

/// Writes a buffer, or a view of one, as an operand; null of null.
using EmitOperand = llvm::function_ref<std::unique_ptr<fb::OperandT>(mlir::Value)>;

/// The entry of a command that has a table of operands (runtime/plan/roles.h).
fb::WorkUnion emitLibraryCommand(mlir::Operation *command, EmitOperand operand);

} // namespace gpuc
