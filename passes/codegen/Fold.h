//===- Fold.h - What a reduction does to one element ------------------------===//
#pragma once

#include "passes/codegen/ElementEmitter.h"

namespace gpuc::codegen {

/// What a reduction carries: one register, or for argmax the value and its index.
using State = llvm::SmallVector<Expr, 2>;

/// sum, prod, reduce_max, reduce_min or argmax as an identity, a step and an associative merge. Sums and
/// products of f16 and bf16 are carried in f32.
class Fold {
public:
  Fold(mlir::Operation *reduction, const Kernel &kernel, ElementEmitter &emitter);

  /// What a fold of nothing is.
  State identity(int64_t lanes);
  /// The operand's elements at the present position, as states; masked lanes (null: none) hold the identity.
  State elements(Expr mask);
  State merge(const State &a, const State &b);
  /// The reduction's element, in register form.
  Expr finish(const State &state);

private:
  Expr identityValue(int64_t lanes);

  mlir::Operation *reduction_;
  const Kernel &kernel_;
  ElementEmitter &emitter_;
  mlir::Value operand_;
  ElementKind kind_;
  size_t dimGroup_; ///< argmax: the group whose coordinate is the index.
};

/// The reductions of one sweep side by side: their states one after another. None changes the bits of
/// another.
class Folds {
public:
  Folds(llvm::ArrayRef<mlir::Operation *> reductions, const Kernel &kernel, ElementEmitter &emitter);

  State identity(int64_t lanes);
  State elements(Expr mask);
  State merge(const State &a, const State &b);
  /// Makes the reductions' elements known to the emitter.
  void bind(const State &state);

private:
  llvm::ArrayRef<mlir::Operation *> reductions_;
  ElementEmitter &emitter_;
  llvm::SmallVector<Fold, 2> folds_;
  llvm::SmallVector<size_t, 3> begins_; ///< Where each fold's state begins, and the end.
};

} // namespace gpuc::codegen
