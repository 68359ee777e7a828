//===- AttentionToPlan.h - Attention as a library's command -------------------===//
#pragma once

#include "passes/plan/ProgramWriter.h"

namespace gpuc {

/// Writes gpuc.attention, or its gradient, as a plan.attention. An error for a target that has none.
mlir::LogicalResult convertAttention(ProgramWriter &writer, mlir::Operation *op, plan::TargetAttr target);

} // namespace gpuc
