//===- ScanParts.h - A scan taken apart, to be put together otherwise --------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc::ir {

/// Whether the use is as the init of a scan, of one number everywhere: no kernel has to write that.
bool isSplatInit(mlir::OpOperand &use);

/// What a scan consists of. Change the lists and the block as you like, then rebuild().
struct ScanParts {
  /// What the region gets from outside: an input or a capture, and the block's argument that stands for it.
  struct Argument {
    mlir::Value outer;
    mlir::Value inner;
  };
  /// `result` is the final value in the scan that there was; null for a carry that is new.
  struct Carry {
    mlir::Value init;
    mlir::Value inner;
    mlir::Value next;
    mlir::Value result;
  };
  struct Output {
    mlir::Value slice;
    mlir::Value result;
  };

  explicit ScanParts(ScanOp op);

  mlir::Block &block() { return scan.getBlock(); }

  /// Arguments of the block for what the region does not get yet; the one that there is, if it does.
  mlir::Value addInput(mlir::Value stacked);
  mlir::Value addCapture(mlir::Value value);
  mlir::Value addCarry(mlir::Value init, mlir::Value next = {});

  /// An argument for the input or capture that stands as `inner` in another scan's block; null if that is
  /// neither.
  mlir::Value addArgumentOf(const ScanParts &other, mlir::Value inner);

  /// The position among the outputs of one that yields `slice`; a new one if there is none.
  size_t addOutput(mlir::Value slice);

  /// Puts `to` in the place of a value of the block, in the lists too.
  void replace(mlir::RewriterBase &rewriter, mlir::Value from, mlir::Value to);

  /// Lets the block yield what the lists say, and the lists say what the block yields.
  void updateYield(mlir::RewriterBase &rewriter);
  void readYield();

  /// Puts a scan of these parts in the place of the one that there was. Arguments of the block that stand in
  /// no list must have no uses any more.
  ScanOp rebuild(mlir::RewriterBase &rewriter);

  ScanOp scan;
  int64_t trips;
  llvm::SmallVector<Argument> inputs;
  llvm::SmallVector<Carry> carries;
  llvm::SmallVector<Argument> captures;
  llvm::SmallVector<Output> outputs;
};

/// The pattern that makes one loop of two over the same chunks.
void addScanMerging(mlir::RewritePatternSet &patterns, mlir::MLIRContext *context);

} // namespace gpuc::ir
