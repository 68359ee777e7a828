//===- ScanToPlan.h - A loop over time as repeated commands ------------------===//
#pragma once

#include "passes/plan/ProgramWriter.h"

namespace gpuc {

/// A reshape is no op of its own in a plan, but another name for its operand's bytes.
mlir::Value throughReshapes(mlir::Value value);

/// Lets the scans of a block have their inits written where they carry their values. Before convertOps.
void prepareScans(ProgramWriter &writer, mlir::Block &block);

/// Writes a scan as a plan.repeat; prepareScans has seen its block.
mlir::LogicalResult convertScan(ProgramWriter &writer, ir::ScanOp scan);

} // namespace gpuc
