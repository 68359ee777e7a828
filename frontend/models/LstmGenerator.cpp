//===- LstmGenerator.cpp - A recurrent language model -----------------------===//
//
// Embedding, LSTM and a linear layer to the vocabulary, as PyTorch tutorials write a language model
// [Mikolov et al. 2010]. `predict` takes the states too and gives them back, so that a text may go on where
// the tokens of one call end. Training begins each sample with zeros.
//
//===----------------------------------------------------------------------===//

#include "frontend/builder/nn.h"
#include "frontend/models/Zoo.h"

namespace gpuc::models {

namespace {

struct Options {
  int64_t vocabulary, embedding, hidden, layers;
  double dropout;
};

struct Generator : nn::Module {
  explicit Generator(const Options &options)
      : options(options), embed(add("embed", nn::Embedding(options.vocabulary, options.embedding))),
        lstm(add("lstm",
                 nn::LSTM(options.embedding, options.hidden,
                          {.layers = options.layers, .dropout = options.layers > 1 ? options.dropout : 0}))),
        linear(add("linear", nn::Linear(options.hidden, options.vocabulary))) {}

  /// Tokens [batch, length] and states [batch, layers, hidden], or none, to logits [batch, length,
  /// vocabulary] and states.
  std::vector<nn::Tensor> operator()(const nn::Tensor &tokens, const nn::RecurrentInputs &states = {}) {
    nn::Recurrence h = lstm(dropped(embed(tokens)), states);
    return {linear(dropped(h.output)), h.hn, h.cn};
  }

  nn::Tensor dropped(const nn::Tensor &x) { return options.dropout > 0 ? dropout(x, options.dropout) : x; }

  Options options;
  nn::Embedding &embed;
  nn::LSTM &lstm;
  nn::Linear &linear;
};

Status build(Settings &settings, nn::ModelBuilder &model) {
  const Options options = {settings.integer("vocabulary", 1, 1 << 24),
                           settings.integer("embedding", 1, 1 << 20), settings.integer("hidden", 1, 1 << 20),
                           settings.integer("layers", 1, 1 << 10), settings.number("dropout", 0, 1)};
  const int64_t length = settings.integer("length", 1, 1 << 24);
  GPUC_RETURN_IF_ERROR(settings.status());

  Generator net(options);
  const nn::Shape tokens = {nn::kBatch, length}, states = {nn::kBatch, options.layers, options.hidden};
  const nn::Input x = {"x", tokens, DataType::i32, options.vocabulary};
  const nn::Input labels = {"labels", tokens, DataType::i32, options.vocabulary};
  model.predictSeveral(
      {x, {"h0", states}, {"c0", states}}, {"logits", "hn", "cn"},
      [&](const std::vector<nn::Tensor> &given) { return net(given[0], {.h0 = given[1], .c0 = given[2]}); });
  model.loss({x}, {labels},
             [&](nn::Tensor x, nn::Tensor labels) { return nn::crossEntropy(net(x)[0], labels); });
  model.accuracy({x}, {labels},
                 [&](nn::Tensor x, nn::Tensor labels) { return nn::accuracy(net(x)[0], labels); });
  return okStatus();
}

} // namespace

ZooModel lstmGenerator() {
  return {"lstm-generator",
          "LSTM language model whose predict takes and gives its states, cross-entropy of the next token",
          {{"layers", "2", "LSTMs, one above the other"},
           {"embedding", "128", "numbers for each token"},
           {"hidden", "256", "units of a layer"},
           {"length", "64", "tokens of a sample"},
           {"vocabulary", "256", "different tokens; 256 are bytes"},
           {"dropout", "0", "probability in [0, 1) before, between and behind the layers"}},
          {.batch = 32, .optimizer = "adam:lr=2e-3"},
          build};
}

} // namespace gpuc::models
