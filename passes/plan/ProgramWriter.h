//===- ProgramWriter.h - A plan.program that is being written ----------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// A program that is being written, as the conversions of loops and library calls see it.
class ProgramWriter {
public:
  explicit ProgramWriter(mlir::MLIRContext *context) : builder(context) {}
  virtual ~ProgramWriter() = default;

  /// Converts the ops of a block but its terminator, at the builder's place.
  virtual mlir::LogicalResult convertOps(mlir::Block &block) = 0;

  /// A buffer of the program's own, under this name or one like it.
  virtual mlir::Value newBuffer(llvm::StringRef name, mlir::RankedTensorType type, plan::Category category,
                                mlir::Location location) = 0;

  /// A workspace of this name and ".workspace"; null for one of no bytes.
  mlir::Value workspaceFor(llvm::StringRef name, int64_t bytes, mlir::Location location) {
    if (bytes == 0)
      return {};
    return newBuffer((name + ".workspace").str(), mlir::RankedTensorType::get({bytes}, builder.getI8Type()),
                     plan::Category::workspace, location);
  }

  /// The buffer that the value is to be computed in: its place if it has one, else a new one of this name.
  virtual mlir::Value bufferFor(mlir::Value value, llvm::StringRef name) = 0;

  /// A variable's or constant's buffer.
  virtual mlir::Value useOf(llvm::StringRef symbol, mlir::Location location) = 0;

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

} // namespace gpuc
