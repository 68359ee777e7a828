//===- VerifyCommands.h - What holds of commands whose buffers have no place ===//
#pragma once

#include "passes/base/Blame.h"

#include "mlir/IR/BuiltinOps.h"

namespace gpuc {

/// Whether the module is as gpuc-to-plan leaves it, as Passes.td says under gpuc-verify-stage.
mlir::LogicalResult verifyCommands(mlir::ModuleOp module, const Blame &blame);

} // namespace gpuc
