//===- Transformer.h - Attention with heads, encoders and decoders ----------===//
//
// Names, layouts, defaults and initializers are PyTorch's, with batch_first=True: sequences are [batch,
// length, width].
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/builder/Attention.h"
#include "frontend/builder/Layers.h"
#include "frontend/builder/Norms.h"

namespace gpuc::nn {

/// Attention of `heads` heads of width / heads each, with a linear layer before and after. Parameters:
/// `in_proj_weight` [3 · width, width] (query, key, value), uniform in ±√(6 / (4 · width)), `in_proj_bias`
/// zeros, and Linear `out_proj`, whose bias begins as zeros. Without bias it has the weights alone.
class MultiheadAttention : public Module {
public:
  MultiheadAttention(int64_t width, int64_t heads, double dropout = 0, bool bias = true);
  std::string describe() const override;
  bool addAdapter(const LoraOptions &options) override;

  struct Options {
    bool causal = false;
    Tensor mask = {}; ///< As AttentionOptions::mask: [batch, 1, 1, keys] hides keys of i1 false.
  };
  /// query [batch, queries, width], key and value [batch, keys, width]; gives [batch, queries, width].
  Tensor operator()(const Tensor &query, const Tensor &key, const Tensor &value, const Options &options);
  Tensor operator()(const Tensor &query, const Tensor &key, const Tensor &value) {
    return (*this)(query, key, value, Options());
  }

private:
  Tensor project(const Tensor &x, int64_t part);
  Tensor splitHeads(const Tensor &x);

  int64_t width_, heads_;
  double dropout_;
  bool bias_;
  Linear &outProj_;
  std::optional<LoraAdapter> lora_; ///< Of in_proj_weight.
};

struct TransformerOptions {
  int64_t width = 512;
  int64_t heads = 8;
  int64_t feedforward = 2048;
  double dropout = 0.1;
  bool gelu = false;      ///< Instead of relu.
  bool normFirst = false; ///< Norms stand before attention and feedforward, not behind the sums.
  double eps = 1e-5;
};

class TransformerEncoderLayer : public Module {
public:
  explicit TransformerEncoderLayer(const TransformerOptions &options);
  std::string describe() const override;

  /// x [batch, length, width]; `mask` as in AttentionOptions.
  Tensor operator()(const Tensor &x, const MultiheadAttention::Options &attention);

private:
  TransformerOptions options_;
  MultiheadAttention &selfAttention_;
  Linear &linear1_, &linear2_;
  LayerNorm &norm1_, &norm2_;
};

class TransformerDecoderLayer : public Module {
public:
  explicit TransformerDecoderLayer(const TransformerOptions &options);
  std::string describe() const override;

  /// x [batch, length, width] sees itself by `self`, and memory [batch, keys, width] by `cross`.
  Tensor operator()(const Tensor &x, const Tensor &memory, const MultiheadAttention::Options &self,
                    const MultiheadAttention::Options &cross);

private:
  TransformerOptions options_;
  MultiheadAttention &selfAttention_, &crossAttention_;
  Linear &linear1_, &linear2_;
  LayerNorm &norm1_, &norm2_, &norm3_;
};

/// `layers`.0, .1, … one after another, then `norm` if `norm` says so.
class TransformerEncoder : public Module {
public:
  TransformerEncoder(const TransformerOptions &options, int64_t count, bool norm = true);
  std::string describe() const override { return "TransformerEncoder"; }
  Tensor operator()(const Tensor &x, const MultiheadAttention::Options &attention);

private:
  std::vector<TransformerEncoderLayer *> layers_;
  LayerNorm *norm_ = nullptr;
};

class TransformerDecoder : public Module {
public:
  TransformerDecoder(const TransformerOptions &options, int64_t count, bool norm = true);
  std::string describe() const override { return "TransformerDecoder"; }
  Tensor operator()(const Tensor &x, const Tensor &memory, const MultiheadAttention::Options &self,
                    const MultiheadAttention::Options &cross);

private:
  std::vector<TransformerDecoderLayer *> layers_;
  LayerNorm *norm_ = nullptr;
};

} // namespace gpuc::nn
