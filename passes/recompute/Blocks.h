//===- Blocks.h - Layers that are computed again as a whole ------------------===//
#pragma once

#include "passes/recompute/StepForward.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

#include <set>
#include <string>
#include <vector>

namespace gpuc {

/// The names of the layers of all functions, and of those that they stand in: `h`, `h.0` and `h.0.attn` of
/// the last.
std::set<std::string> layersOfFunctions(mlir::ModuleOp module);

/// Fails, with an error that `emitHere` begins, for a pattern that matches none of the layers.
mlir::LogicalResult checkBlock(llvm::StringRef pattern, const std::set<std::string> &layers,
                               llvm::function_ref<mlir::InFlightDiagnostic()> emitHere);

/// Of an op's layer, `h.0.attn.c_attn`, the outermost that a pattern matches is its block: of `h.*` it is
/// `h.0`. The numbers of the values that are not computed again with their block: those of none, and those
/// that another one reads.
llvm::BitVector valuesBetweenBlocks(const StepForward &step, const std::vector<std::string> &patterns);

} // namespace gpuc
