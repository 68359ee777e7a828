//===- Passes.h - The compiler's passes, and what they tell one another ------===//
//
// Each pass is described in Passes.td and lives in a file of its own; Pipelines.h strings them together and
// registers them.
//
#pragma once

#include "dialects/gpuc/GpucDialect.h"

#include "mlir/Pass/Pass.h"

namespace gpuc {

/// Of a copy of a function, beside it, that counts what the function makes of NaN and infinities: the
/// function. Set by gpuc-check-numerics, for gpuc-join-checks.
inline constexpr llvm::StringLiteral kChecksOfAttr = "gpuc.checks_of";

/// Of a function of the model that is an entry of the plan by itself. Set by gpuc-find-entries, for
/// gpuc-expand-recipe.
inline constexpr llvm::StringLiteral kEntryAttr = "gpuc.entry";

/// Of a module, the target whose kernels and libraries have every op of it: "cuda:sm_90". Set by gpuc-fuse,
/// gone with gpuc-to-plan.
inline constexpr llvm::StringLiteral kFusedForAttr = "gpuc.fused_for";

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

} // namespace gpuc
