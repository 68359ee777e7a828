//===- Recompute.h - Values that are computed again, not kept ----------------===//
#pragma once

#include "passes/recompute/ForwardPass.h"

namespace gpuc {

/// Lets the backward pass read, in place of each value that `keeps` does not hold for, a copy that is
/// computed again before its first backward reader, from what is kept. Each op has one copy at most, with the
/// attribute kRecomputedAttr. Returns how many ops were copied.
int64_t recompute(const ForwardPass &forward, llvm::function_ref<bool(mlir::Value)> keeps);

} // namespace gpuc
