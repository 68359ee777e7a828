//===- FusedKernel.h - A set of ops as the region of one kernel -------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/StringMap.h"

namespace gpuc {

/// The ops of one kernel, in block order, as a block of their own: what they read from outside becomes
/// arguments, and `isCopied` says which of the ops outside (constants, broadcasts …) are copied in instead.
class FusedKernel {
public:
  using Predicate = llvm::function_ref<bool(mlir::Operation *)>;

  /// `outputs`, results of `ops`, are what the kernel yields.
  FusedKernel(llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> outputs, Predicate isCopied);

  mlir::Block &body() { return *body_; }

  /// One more argument, behind the others; no op of the body reads it.
  mlir::BlockArgument addArgument(mlir::Value value);

  /// Puts a gpuc.fused with this body where `builder` stands, and its results in place of the outputs.
  ir::FusedOp build(mlir::OpBuilder &builder, llvm::StringRef name);

private:
  void copy(mlir::Operation *op);
  void require(mlir::Value value, Predicate isCopied);

  std::unique_ptr<mlir::Block> body_;
  llvm::DenseMap<mlir::Value, mlir::Value> mapping_;
  llvm::SmallVector<mlir::Value> inputs_, outputs_;
  llvm::SmallVector<mlir::Location> locations_;
};

/// Names kernels by the layer and the ops that they came from, "fc1.add_relu"; equal names get a suffix.
class KernelNames {
public:
  std::string nameFor(llvm::ArrayRef<mlir::Operation *> ops);

private:
  llvm::StringMap<unsigned> used_;
};

} // namespace gpuc
