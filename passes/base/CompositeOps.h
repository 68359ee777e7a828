//===- CompositeOps.h - Composite ops by their definitions ------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

/// Puts its definition in place of each composite op under `root` that `isDue`, and of those in that
/// definition, until none is left. Fails, after an error, where an op has no definition yet: its batch is not
/// bound.
llvm::LogicalResult decomposeWhere(mlir::Operation *root,
                                   llvm::function_ref<bool(ir::CompositeOpInterface)> isDue);

} // namespace gpuc
