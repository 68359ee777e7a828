//===- Attention.h - Scaled dot-product attention -----------------------------===//
#pragma once

#include "frontend/builder/Tensor.h"

#include <optional>

namespace gpuc::nn {

struct AttentionOptions {
  /// Broadcast to [batch, heads, queries, keys]: i1, true where it is seen, or added to scores.
  Tensor mask = {};
  std::optional<double> scale = {}; ///< Of scores; none: 1 / √(length of a key).
  bool causal = false;              ///< A query sees keys up to its own position.
  double dropout = 0;               ///< Of probabilities, while training; in [0, 1).
};

/// softmax(scale · query · keyᵀ + mask) · value, of query [batch, heads, queries, d], key [batch, groups,
/// keys, d] and value [batch, groups, keys, e]; heads is a multiple of groups, and e may differ from d. A
/// query that sees no key gives 0.
Tensor attention(const Tensor &query, const Tensor &key, const Tensor &value,
                 const AttentionOptions &options = {});

} // namespace gpuc::nn
