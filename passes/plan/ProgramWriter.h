//===- ProgramWriter.h - A plan.program that is being written ----------------===//
#pragma once

#include "passes/kernels/Epilogues.h"
#include "runtime/plan/header.h"

namespace gpuc {

/// A program that is being written, as the conversions of loops and library calls see it.
class ProgramWriter {
public:
  explicit ProgramWriter(plan::TargetAttr target) : target(target), builder(target.getContext()) {}
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
    if (target.getKind() == plan::TargetKind::cuda)
      bytes = llvm::alignTo(bytes, kGpuWorkspaceAlignment);
    return newBuffer((name + ".workspace").str(), mlir::RankedTensorType::get({bytes}, builder.getI8Type()),
                     plan::Category::workspace, location);
  }

  /// The buffer that the value is to be computed in: its place if it has one, else a new one of this name.
  virtual mlir::Value bufferFor(mlir::Value value, llvm::StringRef name) = 0;

  /// Launches a kernel that adds up `parts`, a buffer of its own, to `sum`, unless they are that sum already.
  virtual void addUp(mlir::Value parts, mlir::Value sum) = 0;

  /// A variable's or constant's buffer.
  virtual mlir::Value useOf(llvm::StringRef symbol, mlir::Location location) = 0;

  /// What a value is for.
  virtual plan::Category categoryOf(mlir::Value value) const = 0;

  /// Where what all commands may use is declared.
  virtual mlir::OpBuilder declarations() = 0;

  /// Whether the value is written where a variable lies.
  virtual bool isAssigned(mlir::Value value) const = 0;

  const plan::TargetAttr target;
  mlir::OpBuilder builder;                          // where the next command goes
  llvm::DenseMap<mlir::Value, mlir::Value> buffers; // tensor → buffer
  llvm::DenseMap<mlir::Value, mlir::Value> places;  // tensor that is yet to be computed → buffer to write
  llvm::DenseMap<mlir::Value, mlir::Value> sums;    // product → buffer that it is added to
  // Kernel that a sum makes needless → its buffer.
  llvm::DenseMap<mlir::Operation *, mlir::Value> addedElsewhere;
  int64_t depth = 0; // repeats around that place
};

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// Writes gpuc.attention, or its gradient, as a plan.attention. An error for a target that has none.
mlir::LogicalResult convertAttention(ProgramWriter &writer, mlir::Operation *op);

/// Writes a product with nothing behind it, or that of the region, whose arguments are names of what they
/// stand for. An error where the target's library does not do what follows.
mlir::LogicalResult convertProduct(ProgramWriter &writer, mlir::Operation *op);
mlir::LogicalResult convertProduct(ProgramWriter &writer, ir::FusedOp fused, const Epilogue &epilogue);

/// A product that becomes a command, with what follows it.
struct Product {
  mlir::Operation *op;   ///< A ProductOpInterface.
  mlir::Value result;    ///< What the last op of it gives.
  std::string name = ""; ///< Of the result's buffer; empty if that is called by layer and command.
  mlir::Location location;
  mlir::Value bias = {}, mask = {}; ///< Buffers; null where there are none.
  bool relu = false;
  mlir::Value squares = {}; ///< The sum of all elements' squares, or null.
};

/// Lets the scans of a block have their inits written where they carry their values. Before convertOps.
void prepareScans(ProgramWriter &writer, mlir::Block &block);

/// Writes a scan as a plan.repeat; prepareScans has seen its block.
mlir::LogicalResult convertScan(ProgramWriter &writer, ir::ScanOp scan);

/// A reshape is no op of its own in a plan, but another name for its operand's bytes.
mlir::Value throughReshapes(mlir::Value value);

} // namespace gpuc
