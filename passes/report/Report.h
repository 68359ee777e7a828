//===- Report.h - What the compiler knows of a plan, as JSON ----------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace gpuc {

/// The figures of a placed plan: its memory to the byte and by category at the instant of its peak, its work,
/// and what the forward pass keeps for the backward pass. docs/report.md explains each field.
mlir::FailureOr<llvm::json::Object> reportOf(mlir::ModuleOp module);

} // namespace gpuc
