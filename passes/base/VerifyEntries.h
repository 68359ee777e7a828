//===- VerifyEntries.h - What holds of entries from the step to the plan ----===//
#pragma once

#include "passes/base/Blame.h"

#include "mlir/IR/BuiltinOps.h"

namespace gpuc {

/// Whether the module's functions are entries, as Passes.td says under gpuc-verify-stage.
mlir::LogicalResult verifyEntries(mlir::ModuleOp module, const Blame &blame);

} // namespace gpuc
