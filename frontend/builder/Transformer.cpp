//===- Transformer.cpp - Attention with heads, encoders and decoders --------===//

#include "frontend/builder/Transformer.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace gpuc::nn {

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

MultiheadAttention::MultiheadAttention(int64_t width, int64_t heads, double dropout, bool bias)
    : width_(width), heads_(heads), dropout_(dropout), bias_(bias),
      outProj_(add(
          "out_proj",
          Linear(width, width, bias).initialized(Initializer::kaimingUniform(width), Initializer::zeros()))) {
}

std::string MultiheadAttention::describe() const {
  return llvm::formatv("MultiheadAttention({0}, {1}{2})", width_, heads_, bias_ ? "" : ", bias=false");
}

/// x times the third of in_proj that makes queries (part 0), keys (1) or values (2).
Tensor MultiheadAttention::project(const Tensor &x, int64_t part) {
  const double bound = std::sqrt(6.0 / (4.0 * static_cast<double>(width_))); // xavier_uniform of [3w, w]
  Tensor weight = parameter(x, "in_proj_weight", {3 * width_, width_}, Initializer::uniform(bound));
  const int64_t first = part * width_, last = first + width_;
  Tensor y = matmul(x, slice(weight, 0, first, last), /*transposeRhs=*/true);
  if (bias_)
    y = y + slice(parameter(x, "in_proj_bias", {3 * width_}, Initializer::zeros()), 0, first, last);
  return lora_ && y.valid() ? y + (*lora_)(x, first, last) : y;
}

/// One for the packed weight: queries, keys and values share lora_A.
bool MultiheadAttention::addAdapter(const LoraOptions &options) {
  lora_.emplace(
      options, add("lora_A", Linear(width_, options.rank, /*bias=*/false)),
      add("lora_B", Linear(options.rank, 3 * width_, /*bias=*/false).initialized(Initializer::zeros())));
  return true;
}

/// [batch, length, width] to [batch, heads, length, width / heads].
Tensor MultiheadAttention::splitHeads(const Tensor &x) {
  if (!x.valid())
    return {};
  return transpose(reshape(x, {x.shape()[0], x.shape()[1], heads_, width_ / heads_}), 1, 2);
}

Tensor MultiheadAttention::operator()(const Tensor &query, const Tensor &key, const Tensor &value,
                                      const Options &options) {
  return call(query, [&]() -> Tensor {
    detail::Graph &graph = *query.graph();
    if (heads_ < 1 || width_ < 1 || width_ % heads_ != 0)
      return graph.fail(describe() + " needs a width that its heads divide");
    for (const Tensor *x : {&query, &key, &value})
      if (x->valid() && (x->rank() != 3 || x->shape()[2] != width_))
        return graph.fail(llvm::formatv("{0} takes [batch, length, {1}], got {2}", describe(), width_,
                                        toString(x->shape())));
    Tensor heads =
        attention(splitHeads(project(query, 0)), splitHeads(project(key, 1)), splitHeads(project(value, 2)),
                  {.mask = options.mask, .causal = options.causal, .dropout = dropout_});
    return outProj_(heads.valid() ? flatten(transpose(heads, 1, 2), 2) : heads);
  });
}

//===----------------------------------------------------------------------===//
// Encoder and decoder layers
//===----------------------------------------------------------------------===//

namespace {

std::string text(const char *kind, const TransformerOptions &options) {
  return llvm::formatv("{0}({1}, {2}, {3}{4}{5})", kind, options.width, options.heads, options.feedforward,
                       options.gelu ? ", gelu" : "", options.normFirst ? ", norm_first" : "");
}

Tensor dropped(const Tensor &x, const TransformerOptions &options) {
  return options.dropout > 0 ? dropout(x, options.dropout) : x;
}

/// x + block(norm(x)), or norm(x + block(x)).
template <typename Block>
Tensor residual(const Tensor &x, LayerNorm &norm, const TransformerOptions &options, Block block) {
  if (options.normFirst)
    return x + dropped(block(norm(x)), options);
  return norm(x + dropped(block(x), options));
}

Tensor feedforward(const Tensor &x, Linear &linear1, Linear &linear2, const TransformerOptions &options) {
  Tensor hidden = linear1(x);
  return linear2(dropped(options.gelu ? gelu(hidden) : relu(hidden), options));
}

} // namespace

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerOptions &options)
    : options_(options),
      selfAttention_(add("self_attn", MultiheadAttention(options.width, options.heads, options.dropout))),
      linear1_(add("linear1", Linear(options.width, options.feedforward))),
      linear2_(add("linear2", Linear(options.feedforward, options.width))),
      norm1_(add("norm1", LayerNorm({options.width}, options.eps))),
      norm2_(add("norm2", LayerNorm({options.width}, options.eps))) {}

std::string TransformerEncoderLayer::describe() const { return text("TransformerEncoderLayer", options_); }

Tensor TransformerEncoderLayer::operator()(const Tensor &x, const MultiheadAttention::Options &attention) {
  return call(x, [&] {
    Tensor h =
        residual(x, norm1_, options_, [&](const Tensor &h) { return selfAttention_(h, h, h, attention); });
    return residual(h, norm2_, options_,
                    [&](const Tensor &h) { return feedforward(h, linear1_, linear2_, options_); });
  });
}

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerOptions &options)
    : options_(options),
      selfAttention_(add("self_attn", MultiheadAttention(options.width, options.heads, options.dropout))),
      crossAttention_(
          add("multihead_attn", MultiheadAttention(options.width, options.heads, options.dropout))),
      linear1_(add("linear1", Linear(options.width, options.feedforward))),
      linear2_(add("linear2", Linear(options.feedforward, options.width))),
      norm1_(add("norm1", LayerNorm({options.width}, options.eps))),
      norm2_(add("norm2", LayerNorm({options.width}, options.eps))),
      norm3_(add("norm3", LayerNorm({options.width}, options.eps))) {}

std::string TransformerDecoderLayer::describe() const { return text("TransformerDecoderLayer", options_); }

Tensor TransformerDecoderLayer::operator()(const Tensor &x, const Tensor &memory,
                                           const MultiheadAttention::Options &self,
                                           const MultiheadAttention::Options &cross) {
  return call(x, [&] {
    Tensor h = residual(x, norm1_, options_, [&](const Tensor &h) { return selfAttention_(h, h, h, self); });
    h = residual(h, norm2_, options_,
                 [&](const Tensor &h) { return crossAttention_(h, memory, memory, cross); });
    return residual(h, norm3_, options_,
                    [&](const Tensor &h) { return feedforward(h, linear1_, linear2_, options_); });
  });
}

//===----------------------------------------------------------------------===//
// Stacks of layers
//===----------------------------------------------------------------------===//

namespace {

/// The module called `layers`, whose children are numbered.
template <typename LayerType> struct Numbered : Module {
  Numbered(const TransformerOptions &options, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      layers.push_back(&add(std::to_string(i), LayerType(options)));
  }

  std::vector<LayerType *> layers;
};

} // namespace

TransformerEncoder::TransformerEncoder(const TransformerOptions &options, int64_t count, bool norm)
    : layers_(add("layers", Numbered<TransformerEncoderLayer>(options, count)).layers) {
  if (norm)
    norm_ = &add("norm", LayerNorm({options.width}, options.eps));
}

Tensor TransformerEncoder::operator()(const Tensor &x, const MultiheadAttention::Options &attention) {
  return call(x, [&] {
    Tensor h = x;
    for (TransformerEncoderLayer *layer : layers_)
      h = (*layer)(h, attention);
    return norm_ ? (*norm_)(h) : h;
  });
}

TransformerDecoder::TransformerDecoder(const TransformerOptions &options, int64_t count, bool norm)
    : layers_(add("layers", Numbered<TransformerDecoderLayer>(options, count)).layers) {
  if (norm)
    norm_ = &add("norm", LayerNorm({options.width}, options.eps));
}

Tensor TransformerDecoder::operator()(const Tensor &x, const Tensor &memory,
                                      const MultiheadAttention::Options &self,
                                      const MultiheadAttention::Options &cross) {
  return call(x, [&] {
    Tensor h = x;
    for (TransformerDecoderLayer *layer : layers_)
      h = (*layer)(h, memory, self, cross);
    return norm_ ? (*norm_)(h) : h;
  });
}

} // namespace gpuc::nn
