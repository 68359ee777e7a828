//===- Lora.h - Fine-tuning by low-rank adapters ----------------------------===//
#pragma once

#include "frontend/builder/Module.h"

namespace gpuc::nn {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;  ///< What the adapters add is multiplied by alpha / rank.
  double dropout = 0; ///< Of what the adapters see, in [0, 1).
};

/// Freezes all of `net` and gives every Linear inside, and the packed `in_proj_weight` of every
/// MultiheadAttention, an adapter that is trained in its place:
///
///   y = x · weightᵀ + bias + alpha / rank · dropout(x) · Aᵀ · Bᵀ
///
/// with the parameters `lora_A.weight` [rank, in], which begins as a Linear's weight, and `lora_B.weight`
/// [out, rank], which begins as zeros: so does what the adapter adds [Hu et al. 2021, arXiv:2106.09685].
/// Names are those of the peft package, without the prefix that its files have and without the `base_layer`
/// that they put around a MultiheadAttention's `out_proj`. Other weights (embeddings, convolutions, recurrent
/// cells) get no adapter and stay frozen: Model::leftOut() names them. Call it before the model uses `net`.
/// Returns how many adapters there are.
int64_t addLora(Module &net, const LoraOptions &options = {});

class Linear;

/// The modules lora_A and lora_B beside a weight [out, in], its module's children.
class LoraAdapter {
public:
  LoraAdapter(const LoraOptions &options, Linear &a, Linear &b);

  /// alpha / rank · dropout(x) · Aᵀ · Bᵀ, of B the rows first to last - 1 alone.
  Tensor operator()(const Tensor &x, int64_t first, int64_t last);

private:
  LoraOptions options_;
  Linear *a_, *b_;
};

} // namespace gpuc::nn
