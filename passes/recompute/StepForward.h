//===- StepForward.h - All that a step's backward pass may compute again -------===//
#pragma once

#include "passes/recompute/ForwardPass.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"

#include <deque>

namespace gpuc {

/// Fails, with an error, if no op of the step is known to belong to gradients: locations say it.
mlir::LogicalResult checkGradientsAreKnown(mlir::func::FuncOp step);

/// What may be decided of a step's memory. Not a bit hangs on it.
struct StepChoice {
  llvm::BitVector kept;      ///< By the values' numbers; what is not is computed again.
  bool slicesInTurn = false; ///< Slices of the batch one after another, in the memory of one.
  /// What is computed again is not written again by another kernel, too (base/WrittenAgain.h).
  bool readsFirstWritten = false;

  bool operator==(const StepChoice &) const = default;
};

/// Does to a step what was chosen.
void apply(const StepChoice &choice, mlir::func::FuncOp step);

/// The forward pass of a training step, and those of its loops over parts of the batch. What they compute has
/// numbers, the same in each clone of the step.
class StepForward {
public:
  explicit StepForward(mlir::func::FuncOp step);

  mlir::func::FuncOp function() const { return function_; }
  const std::deque<ForwardPass> &passes() const { return passes_; }

  /// The values that ops of the passes compute.
  llvm::ArrayRef<mlir::Value> values() const { return values_; }
  unsigned numberOf(mlir::Value value) const { return numbers_.lookup(value); }

  /// The values that are not kept.
  llvm::DenseSet<mlir::Value> droppedBy(const llvm::BitVector &kept) const;

  /// The same choice, with all kept that nothing computed again would read: equal ones are the same plan.
  llvm::BitVector normalized(const llvm::BitVector &kept) const;

  /// Lets the backward pass compute again what is not kept, by numbers. The passes are of no use afterwards.
  void recompute(const llvm::BitVector &kept);

  /// Whether slices of the batch may be computed at once, each in memory of its own.
  bool hasSlices() const;

private:
  void visit(mlir::Block &block, llvm::ArrayRef<unsigned> results);

  mlir::func::FuncOp function_;
  std::deque<ForwardPass> passes_;
  std::vector<mlir::Value> values_;
  llvm::DenseMap<mlir::Value, unsigned> numbers_;
};

} // namespace gpuc
