//===- BackwardPass.h - The backward pass of one block -----------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace gpuc {

bool isFloat(mlir::Value value);

/// Appends to a block, before its terminator, the ops that compute cotangents: it visits the ops in reverse
/// and asks each (DifferentiableOpInterface) for the cotangents of its operands, adding up where a value has
/// several uses. Only what varies is visited.
///
/// An op's backward ops may read of the forward pass only what the op declares in getResiduals, so that what
/// is kept for them is known: a breach is an error here, at the op. A scan is replaced by one that stacks
/// what its backward scan will read (ScanDerivative.h).
class BackwardPass {
public:
  explicit BackwardPass(mlir::Block &block) : block_(block), builder_(block.getTerminator()) {}

  /// What is differentiated by: arguments of the block, and variables that it reads. Before run().
  void differentiateBy(mlir::Value argument) { varied_.insert(argument); }
  void differentiateBy(llvm::StringRef variable) { variables_.insert(variable); }

  /// Marks all that varies with those. Before seed().
  void findVaried();
  bool varies(mlir::Value value) const { return varied_.contains(value); }

  /// Adds to the cotangent of a value; without effect if the value does not vary.
  void seed(mlir::Value value, mlir::Value cotangent);

  mlir::LogicalResult run();

  /// The cotangent of an argument; null if nothing with a cotangent depends on it.
  mlir::Value ofArgument(mlir::Value argument) const { return cotangents_.lookup(argument); }

  /// The cotangent of a variable, over all places that read it; null likewise.
  mlir::Value ofVariable(llvm::StringRef variable);

  mlir::OpBuilder &builder() { return builder_; }

private:
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult visitScan(ir::ScanOp scan, llvm::ArrayRef<mlir::Value> given);
  mlir::LogicalResult checkVJP(ir::DifferentiableOpInterface op, llvm::ArrayRef<mlir::Value> given,
                               llvm::ArrayRef<mlir::Value> computed, mlir::Operation *before);
  void accumulate(mlir::Location forward, llvm::ArrayRef<mlir::Value> values,
                  llvm::ArrayRef<mlir::Value> computed);
  /// `sum` may be null.
  mlir::Value add(mlir::Location forward, mlir::Value sum, mlir::Value term);
  void eraseDead(mlir::Operation *lastForward);

  mlir::Block &block_;
  mlir::OpBuilder builder_;
  llvm::StringSet<> variables_;
  llvm::DenseSet<mlir::Value> varied_;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents_;
  llvm::StringMap<llvm::SmallVector<ir::ReadOp, 1>> reads_; ///< Of each variable, once one is asked for.
};

} // namespace gpuc
