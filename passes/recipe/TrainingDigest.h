//===- TrainingDigest.h - A number for what is trained, and how --------------===//
#pragma once

#include "dialects/gpuc/GpucDialect.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>

namespace gpuc {

/// The same for two modules whose recipes train the same: loss, variables, optimizer, schedule, precision and
/// what else changes an update. It does not hang on how the batch is shared out among ranks and microbatches,
/// on seed, initial values, layers' names and places, or on what is only evaluated. Never 0.
uint64_t digestOfTraining(mlir::ModuleOp module, ir::RecipeOp recipe);

} // namespace gpuc
