//===- Lifetimes.h - When each buffer of a program is needed ----------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "llvm/ADT/MapVector.h"

namespace gpuc {

/// Half-open interval of positions on the program's main stream, or, before there are streams, in its order.
/// What other streams do is widened to all positions at which it may happen, so buffers whose intervals do
/// not meet are never live at once.
///
/// Each command in a repeat has one position. A buffer that holds something in the course of one iteration
/// only lives at those positions where it does; others may lie there at the positions between. One that
/// hands something on to the next iteration, or takes something in or out, lives throughout the repeat.
struct Lifetime {
  int64_t lower;
  int64_t upper;
  mlir::Block *scope = nullptr; // the commands of the loop in one iteration of which it lives, if it does
};

using Lifetimes = llvm::MapVector<plan::AllocOp, Lifetime>;

/// Lifetimes of the buffers that the program itself allocates. An output lives until the program's end.
mlir::FailureOr<Lifetimes> computeLifetimes(plan::ProgramOp program);

/// Of the buffers that live in one iteration of a repeat, its commands.
llvm::DenseMap<mlir::Operation *, mlir::Block *> iterationScopes(plan::ProgramOp program);

/// How many positions a command takes: as many as it repeats, at least one.
int64_t positionsOf(plan::CommandOpInterface command);

/// Number of positions on the main stream.
int64_t positionsOf(plan::ProgramOp program);

} // namespace gpuc
