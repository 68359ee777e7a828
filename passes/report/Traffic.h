//===- Traffic.h - Where commands find the bytes that they touch ---------------===//
//
// A core finds what it touched a moment ago in its own cache, what it touched a while ago in the shared one,
// and the rest in memory. "A while" is counted in bytes: those that were touched in between, each once, by
// whatever command. What was written, and is touched again only after so long that it comes from memory, was
// written back there for the command that wrote it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/cost/Rates.h"
#include "passes/cost/Work.h"

namespace gpuc {

/// Of each command of a placed program that runs over and over; a mean over the iterations of the loops
/// around it.
mlir::FailureOr<llvm::DenseMap<mlir::Operation *, Traffic>>
trafficOf(plan::ProgramOp program, const CacheSizes &caches, WorkTable &works);

} // namespace gpuc
