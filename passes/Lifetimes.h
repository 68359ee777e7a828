//===- Lifetimes.h - When each buffer of a program is needed ----------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "llvm/ADT/MapVector.h"

namespace gpuc {

/// Half-open interval of positions on the program's main stream. What other streams do is widened to all
/// positions at which it may happen, so buffers whose intervals do not meet are never live at once.
struct Lifetime {
  int64_t lower;
  int64_t upper;
};

using Lifetimes = llvm::MapVector<plan::AllocOp, Lifetime>;

/// Lifetimes of the buffers that the program itself allocates. An output lives until the program's end.
mlir::FailureOr<Lifetimes> computeLifetimes(plan::ProgramOp program);

/// Number of positions on the main stream.
int64_t positionsOf(plan::ProgramOp program);

} // namespace gpuc
