//===- ScanToPlan.h - A loop over time as repeated commands ------------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// A program that is being written, as the conversion of a scan sees it.
class ProgramWriter {
public:
  explicit ProgramWriter(mlir::MLIRContext *context) : builder(context) {}
  virtual ~ProgramWriter() = default;

  /// Converts the ops of a block but its terminator, at the builder's place.
  virtual mlir::LogicalResult convertOps(mlir::Block &block) = 0;

  /// A buffer of the program's own, under this name or one like it.
  virtual mlir::Value newBuffer(llvm::StringRef name, mlir::RankedTensorType type, plan::Category category,
                                mlir::Location location) = 0;

  /// What a value is for.
  virtual plan::Category categoryOf(mlir::Value value) const = 0;

  /// Where what all commands may use is declared.
  virtual mlir::OpBuilder declarations() = 0;

  /// Whether the value is written where a variable lies.
  virtual bool isAssigned(mlir::Value value) const = 0;

  mlir::OpBuilder builder;                          // where the next command goes
  llvm::DenseMap<mlir::Value, mlir::Value> buffers; // tensor → buffer
  llvm::DenseMap<mlir::Value, mlir::Value> places;  // tensor that is yet to be computed → buffer to write
  llvm::DenseMap<mlir::Value, mlir::Value> sums;    // product → buffer that it is added to
  // Kernel that a sum makes needless → its buffer.
  llvm::DenseMap<mlir::Operation *, mlir::Value> addedElsewhere;
  int64_t depth = 0; // repeats around that place
};

/// A reshape is no op of its own in a plan, but another name for its operand's bytes.
mlir::Value throughReshapes(mlir::Value value);

/// Lets the scans of a block have their inits written where they carry their values. Before convertOps.
void prepareScans(ProgramWriter &writer, mlir::Block &block);

/// Writes a scan as a plan.repeat; prepareScans has seen its block.
mlir::LogicalResult convertScan(ProgramWriter &writer, ir::ScanOp scan);

} // namespace gpuc
