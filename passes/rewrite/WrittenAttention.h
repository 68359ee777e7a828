//===- WrittenAttention.h - Attention that a model spells out ---------------===//
#pragma once

#include "passes/rewrite/KnownNumbers.h"

namespace gpuc {

/// Attention that stands in a model as softmax(scale · query · keyᵀ + mask) · value, op by op.
struct WrittenAttention {
  /// That whose last product this is; none if it is another product's, if something else reads what stands
  /// between, or if `gpuc.attention` would compute something else.
  static std::optional<WrittenAttention> of(ir::MatmulOp product, KnownNumbers &known);

  /// `gpuc.attention` in front of the last product, which it could replace.
  ir::AttentionOp build() const;

  /// Puts the result of that op in the place of the last product's.
  void replaceBy(ir::AttentionOp attention) const;

  ir::MatmulOp scores, product;
  ir::DropoutOp dropout; ///< Null: there is none.
  double scale = 1;
  bool causal = false;
  mlir::Value mask; ///< What is added, or hides (see `hides`), as it stands; null: there is none.
  bool hides = false;
};

} // namespace gpuc
