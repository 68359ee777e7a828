//===- CheckSites.h - Where NaN and infinities can begin ---------------------===//
#pragma once

#include "passes/train/BackwardPass.h"

namespace gpuc {

/// Whether the op can make NaN or an infinity of operands that are finite.
bool canMakeNonfinite(mlir::Operation *op);

/// Values in which infinities are no error: what constants bring in, or a mask of attention, and what comes
/// of them until an op takes them away, as softmax does. Of these only NaN is an error.
class Masked {
public:
  explicit Masked(mlir::func::FuncOp function);

  bool contains(mlir::Value value) const { return values_.contains(value); }
  /// Returns whether it is new.
  bool add(mlir::Value value) { return values_.insert(value).second; }

private:
  void seedFromAttention(mlir::Value mask);
  bool spread(mlir::Operation *op);
  bool spreadScan(ir::ScanOp scan);

  llvm::DenseSet<mlir::Value> values_;
};

/// Values that nothing takes but a select, which may leave them out, or what gives no floating point, such as
/// a comparison; or a pointwise op whose own result is so. They are judged behind the select.
class Guarded {
public:
  /// Of the values that ops of the block compute.
  explicit Guarded(mlir::Block &block);

  bool contains(mlir::Value value) const { return values_.contains(value); }

private:
  bool isGuardedUse(mlir::OpOperand &use) const;

  llvm::DenseSet<mlir::Value> values_;
};

/// Who is to blame: the op, its layer, its place in the model's file.
ir::CheckAttr checkOf(mlir::Operation *op);
ir::CheckAttr checkOfSource(mlir::MLIRContext *context, llvm::StringRef kind, llvm::StringRef name);

} // namespace gpuc
