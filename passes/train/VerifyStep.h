//===- VerifyStep.h - What holds of the step that was just made -------------===//
#pragma once

#include "passes/base/Blame.h"

#include "mlir/IR/BuiltinOps.h"

namespace gpuc {

/// Whether the module is as gpuc-expand-recipe leaves it, as Passes.td says under gpuc-verify-stage.
mlir::LogicalResult verifyStep(mlir::ModuleOp module, const Blame &blame);

} // namespace gpuc
