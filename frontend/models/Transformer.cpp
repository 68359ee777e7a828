//===- Transformer.cpp - Encoder and decoder that translate -----------------===//
//
// "Attention is all you need" [Vaswani et al. 2017] as PyTorch's tutorials write it: embeddings and places of
// source and target, nn.Transformer, and a linear layer to the target's vocabulary. Token 0 pads: a padded
// source token is not attended to, a padded label does not count.
//
//===----------------------------------------------------------------------===//

#include "frontend/builder/nn.h"
#include "frontend/models/Zoo.h"

#include <cmath>

namespace gpuc::models {

namespace {

constexpr int64_t kPad = 0;

struct Options {
  nn::TransformerOptions layer;
  int64_t layers = 6;
  int64_t sourceVocabulary = 5000, targetVocabulary = 5000;
};

struct Stacks : nn::Module {
  explicit Stacks(const Options &options)
      : encoder(add("encoder", nn::TransformerEncoder(options.layer, options.layers))),
        decoder(add("decoder", nn::TransformerDecoder(options.layer, options.layers))) {}

  nn::TransformerEncoder &encoder;
  nn::TransformerDecoder &decoder;
};

struct Translator : nn::Module {
  explicit Translator(const Options &options)
      : width(options.layer.width),
        src_embedding(add("src_embedding", nn::Embedding(options.sourceVocabulary, width))),
        tgt_embedding(add("tgt_embedding", nn::Embedding(options.targetVocabulary, width))),
        positional_encoding(add("positional_encoding", nn::PositionalEncoding(options.layer.dropout))),
        transformer(add("transformer", Stacks(options))),
        generator(add("generator", nn::Linear(width, options.targetVocabulary))) {}

  /// Tokens of source [batch, S] and target [batch, T] to logits [batch, T, vocabulary].
  nn::Tensor operator()(const nn::Tensor &source, const nn::Tensor &target) {
    const double scale = std::sqrt(static_cast<double>(width));
    nn::Tensor seen = notEqual(source, kPad); // (batch, S)
    if (!seen.valid())
      return {};
    nn::Tensor mask = reshape(seen, {seen.shape()[0], 1, 1, seen.shape()[1]});
    nn::Tensor memory =
        transformer.encoder(positional_encoding(src_embedding(source) * scale), {.mask = mask});
    nn::Tensor h = transformer.decoder(positional_encoding(tgt_embedding(target) * scale), memory,
                                       {.causal = true}, {.mask = mask});
    return generator(h);
  }

  int64_t width;
  nn::Embedding &src_embedding, &tgt_embedding;
  nn::PositionalEncoding &positional_encoding;
  Stacks &transformer;
  nn::Linear &generator;
};

Status build(Settings &settings, nn::ModelBuilder &model) {
  Options options;
  options.layer.width = settings.integer("width", 2, 1 << 24);
  options.layer.heads = settings.integer("heads", 1, 1 << 16);
  options.layer.feedforward = settings.integer("feedforward", 1, 1 << 24);
  options.layer.dropout = settings.number("dropout", 0, 1);
  options.layers = settings.integer("layers", 1, 1 << 16);
  options.sourceVocabulary = settings.integer("src_vocabulary", 1, 1 << 24);
  options.targetVocabulary = settings.integer("tgt_vocabulary", 1, 1 << 24);
  const int64_t length = settings.integer("length", 1, 1 << 24);
  const double smoothing = settings.number("smoothing", 0, 1);
  GPUC_RETURN_IF_ERROR(settings.status());
  if (options.layer.width % options.layer.heads != 0)
    return Status::error("heads=" + settings.text("heads") +
                         " do not divide width=" + settings.text("width"));

  Translator net(options);
  const nn::Shape tokens = {nn::kBatch, length};
  model.predict({{"src", tokens, DataType::i32, options.sourceVocabulary},
                 {"tgt", tokens, DataType::i32, options.targetVocabulary}},
                "logits", [&](nn::Tensor source, nn::Tensor target) { return net(source, target); });
  const nn::Input labels = {"labels", tokens, DataType::i32, options.targetVocabulary};
  model.loss({labels}, [&](nn::Tensor logits, nn::Tensor labels) {
    return nn::crossEntropy(logits, labels, {.smoothing = smoothing, .ignoreIndex = kPad});
  });
  model.accuracy({labels}, [](nn::Tensor logits, nn::Tensor labels) {
    return nn::accuracy(logits, labels, /*ignoreIndex=*/kPad);
  });
  return okStatus();
}

} // namespace

ZooModel transformer() {
  return {"transformer",
          "Encoder and decoder that translate; src, tgt and labels are tokens, 0 pads; cross-entropy",
          {{"width", "512", "numbers for each token"},
           {"heads", "8", "heads of attention; they divide the width"},
           {"layers", "6", "of the encoder, and of the decoder"},
           {"feedforward", "2048", "units between the two linear layers of a block"},
           {"src_vocabulary", "5000", "different tokens of the source"},
           {"tgt_vocabulary", "5000", "different tokens of the target"},
           {"length", "32", "tokens of a sample, of source and target"},
           {"dropout", "0.1", "probability in [0, 1)"},
           {"smoothing", "0", "label smoothing in [0, 1)"}},
          {.batch = 32, .optimizer = "adam:lr=1e-4,beta2=0.98,eps=1e-9"},
          build};
}

} // namespace gpuc::models
