//===- ForwardPass.h - What of a step comes before its gradients -------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace gpuc {

/// The ops of a block on which its losses depend, and who reads what they compute. The block is the body of
/// the step, or the region of a loop over parts of the batch. A value that is another name for bytes (a
/// reshape, what attention reads by strides) stands for the values whose bytes they are.
class ForwardPass {
public:
  /// `losses` are values of the block.
  ForwardPass(mlir::Block &block, llvm::ArrayRef<mlir::Value> losses);

  mlir::Block &block() const { return block_; }

  /// Its ops that become commands and can be computed again, in the block's order.
  llvm::ArrayRef<mlir::Operation *> ops() const { return ops_; }

  /// Loops in which gradients are computed, too, with those of their results that lead to the losses.
  struct Loop {
    mlir::Operation *op;
    llvm::SmallVector<unsigned> results;
  };
  llvm::ArrayRef<Loop> loops() const { return loops_; }

  /// Whether the value is a result of one of `ops`.
  bool computes(mlir::Value value) const { return readers_.contains(value); }

  /// Whether the op belongs to the gradients, or depends on one that does.
  bool isBackward(mlir::Operation *op) const { return backward_.contains(op); }

  /// Backward ops that stand among `ops` and read what `isDropped` holds for, be it by way of others of them.
  std::vector<mlir::Operation *> earlyReaders(llvm::function_ref<bool(mlir::Value)> isDropped) const;

  /// Who reads a result of one of `ops`.
  struct Readers {
    int64_t lastForward = -1; ///< The number, in `ops`, of the last forward reader; -1: none.
    bool backward = false;    ///< Whether there are backward ones.
  };
  const Readers &readersOf(mlir::Value value) const { return readers_.find(value)->second; }

  /// Whether the value is a stack of a loop over chunks of time (gpuc-cut-scans) that backward loops over the
  /// same chunks alone read: they can compute it again chunk by chunk, from what is carried into each.
  bool isOfChunks(mlir::Value value) const;

  /// The bytes that the backward pass reads of what the op computes, but for those of chunks.
  int64_t residualBytes(mlir::Operation *op) const;

private:
  void findNeeded(llvm::ArrayRef<mlir::Value> losses);
  void findBackward();
  void findReaders();

  mlir::Block &block_;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> needed_; ///< The ops, and which results.
  llvm::SmallVector<mlir::Operation *> ops_;
  llvm::SmallVector<Loop> loops_;
  llvm::DenseSet<mlir::Operation *> backward_;
  llvm::DenseMap<mlir::Value, Readers> readers_;
};

/// Whether the op becomes a command, and its results bytes.
bool becomesCommand(mlir::Operation *op);

/// The first op of the block that reads a result of `op`.
mlir::Operation *firstReader(mlir::Operation *op);

/// The values whose bytes `value` names: itself if a command computes it, none for state and constants.
llvm::SmallVector<mlir::Value, 1> bytesOf(mlir::Value value);

} // namespace gpuc
