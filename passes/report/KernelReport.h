//===- KernelReport.h - What each command of a plan does, as JSON -------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "passes/target/TargetDescription.h"

#include "llvm/Support/JSON.h"

namespace gpuc {

/// Floating-point operations of one execution of a command; 0 of what computes nothing, and of a repeat,
/// whose commands count for themselves.
int64_t flopsOf(plan::CommandOpInterface command);

/// Bytes of the buffers that one execution reads, of a table from which it gathers at most what it gathers;
/// and of those that it writes.
int64_t bytesRead(plan::CommandOpInterface command);
int64_t bytesWritten(plan::CommandOpInterface command);

/// How often the repeats around a command execute it in a run of its program.
int64_t executionsOf(plan::CommandOpInterface command);

/// What one execution is predicted to take.
double nanosecondsOf(plan::CommandOpInterface command, const TargetDescription &device);

/// All that computes something in any program, in the order of each: docs/report.md explains each field.
llvm::json::Array workListOf(mlir::ModuleOp module, const TargetDescription &device);

} // namespace gpuc
