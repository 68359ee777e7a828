//===- Fold.h - What a reduction does to one element ------------------------===//
#pragma once

#include "passes/codegen/ElementEmitter.h"

namespace gpuc::codegen {

/// The reductions of one sweep side by side: each sum, prod, reduce_max, reduce_min or argmax as an identity,
/// a step and an associative merge, and their states one after another. None changes the bits of another.
/// Sums and products of f16 and bf16 are carried in f32.
class Folds {
public:
  Folds(llvm::ArrayRef<mlir::Operation *> reductions, const Kernel &kernel, ElementEmitter &emitter)
      : reductions_(reductions), kernel_(kernel), emitter_(emitter) {}

  /// What folds of nothing are.
  State identity(int64_t lanes);
  /// The operands' elements at the present position, as states; masked lanes (null: none) hold the identity.
  State elements(Expr mask);
  State merge(const State &a, const State &b);
  /// The upper half of the lanes merged into the lower until one is left.
  State mergeLanes(State state);
  /// Makes the reductions' elements known to the emitter.
  void bind(const State &state);

private:
  llvm::ArrayRef<mlir::Operation *> reductions_;
  const Kernel &kernel_;
  ElementEmitter &emitter_;
};

} // namespace gpuc::codegen
