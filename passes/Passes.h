//===- Passes.h - The compiler's passes, and what they tell one another ------===//
//
// Each pass is described in Passes.td and lives in a file of its own; Pipelines.h strings them together and
// registers them.
//
#pragma once

#include "dialects/gpuc/GpucDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <functional>

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

/// The policy of gpuc-checkpoint by which the model itself says, with gpuc.checkpoint, what is computed
/// again.
inline constexpr llvm::StringLiteral kModelPolicy = "model";

/// Of an op, and of the command that it becomes, that computes again what was not kept.
inline constexpr llvm::StringLiteral kRecomputedAttr = "gpuc.recomputed";

/// Of a `parallel` loop whose iterations are done one after another all the same, in the memory of one. What
/// is made of their results is what it would be else, to the bit.
inline constexpr llvm::StringLiteral kInTurnAttr = "gpuc.in_turn";

/// Of a command, the stream on which it is to run beside those that compute, where a stream has that name.
/// Gone with plan-assign-streams.
inline constexpr llvm::StringLiteral kStreamAttr = "plan.on_stream", kCollectiveStream = "collective";

class Blame; // base/Blame.h

/// What gpuc-verify-stage asks behind each stage, as Passes.td says there: whether the module is as
/// gpuc-expand-recipe leaves it; whether its functions are entries; whether it is as gpuc-fuse and
/// gpuc-join-checks leave it; and as gpuc-to-plan does.
mlir::LogicalResult verifyStep(mlir::ModuleOp module, const Blame &blame);
mlir::LogicalResult verifyEntries(mlir::ModuleOp module, const Blame &blame);
mlir::LogicalResult verifyKernels(mlir::ModuleOp module, const Blame &blame);
mlir::LogicalResult verifyCommands(mlir::ModuleOp module, const Blame &blame);

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// The same pass, that tells of each function whose ops have become kernels before it goes on to the next.
std::unique_ptr<mlir::Pass> createFusePass(FusePassOptions options,
                                           std::function<void(mlir::func::FuncOp)> onFused);

} // namespace gpuc
