//===- WholeGradients.h - Gradients that are live together --------------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "llvm/Support/JSON.h"

namespace gpuc {

/// The report's `whole_gradients`, of a placed plan: how many bytes of gradients the train step has live at
/// once, how much lower the arena could be if the command behind the one that finishes a gradient consumed
/// it, and what of the recipe stands against that.
llvm::FailureOr<llvm::json::Object> wholeGradientsOf(mlir::ModuleOp module);

} // namespace gpuc
