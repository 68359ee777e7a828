//===- RnnClassifier.cpp - A picture read row by row ------------------------===//
//
// A recurrent network sees the rows of a picture one after another and classifies by what it holds after the
// last one, in both directions if there are two [Le, Jaitly and Hinton 2015; PyTorch tutorials with
// Fashion-MNIST or MNIST].
//
//===----------------------------------------------------------------------===//

#include "frontend/models/Classification.h"
#include "frontend/models/Zoo.h"

namespace gpuc::models {

namespace {

const std::vector<std::string> kCells = {"rnn", "rnn_relu", "lstm", "gru"}; // in the order of nn::Cell

struct Options {
  nn::Cell cell = nn::Cell::lstm;
  int64_t width = 28, hidden = 128, classes = 10;
  nn::RecurrentOptions layers;
};

struct RnnClassifier : nn::Layer {
  explicit RnnClassifier(const Options &options)
      : options(options), directions(options.layers.bidirectional ? 2 : 1),
        rnn(add("rnn", nn::Recurrent(options.cell, options.width, options.hidden, options.layers))),
        fc(add("fc", nn::Linear(directions * options.hidden, options.classes))) {}

  std::string describe() const override { return "RnnClassifier"; }
  nn::Tensor forward(const nn::Tensor &x) override { // (batch, steps, width)
    nn::Tensor states = rnn(x).hn;                   // (batch, layers * directions, hidden)
    return fc(
        flatten(slice(states, 1, -directions, options.layers.layers * directions))); // of the last layer
  }

  Options options;
  int64_t directions;
  nn::Recurrent &rnn;
  nn::Linear &fc;
};

Status build(Settings &settings, nn::ModelBuilder &model) {
  Options options;
  options.cell = static_cast<nn::Cell>(settings.choice("cell", kCells));
  const int64_t steps = settings.integer("steps", 1, 1 << 20);
  options.width = settings.integer("width", 1, 1 << 20);
  options.hidden = settings.integer("hidden", 1, 1 << 20);
  options.layers.layers = settings.integer("layers", 1, 1 << 10);
  options.layers.bidirectional = settings.flag("bidirectional");
  options.layers.dropout = settings.number("dropout", 0, 1);
  options.classes = settings.integer("classes", 1, 1 << 24);
  GPUC_RETURN_IF_ERROR(settings.status());
  if (options.layers.dropout > 0 && options.layers.layers == 1)
    return Status::error("dropout=" + settings.text("dropout") +
                         " acts between layers, and there is one: give layers=2, or dropout=0");

  PixelsToUnit scale(model.floats());
  RnnClassifier net(options);
  model.predict({{"x", {nn::kBatch, 1, steps, options.width}, DataType::ui8}}, "logits",
                [&](nn::Tensor x) { return net(reshape(scale(x), {nn::kBatch, steps, options.width})); });
  classify(model, options.classes);
  return okStatus();
}

} // namespace

ZooModel rnnClassifier() {
  return {"rnn-classifier",
          "Recurrent network that reads a grey picture row by row and classifies it, cross-entropy",
          {{"cell", "lstm", "rnn (tanh), rnn_relu, lstm or gru"},
           {"steps", "28", "rows of a picture: the steps in time"},
           {"width", "28", "columns of a picture: what a step takes"},
           {"hidden", "128", "units of a layer, in each direction"},
           {"layers", "2", "one above the other"},
           {"bidirectional", "false", "true: each layer also goes from the last row to the first"},
           {"dropout", "0", "probability in [0, 1) between layers"},
           {"classes", "10", "classes to tell apart"}},
          {},
          build};
}

} // namespace gpuc::models
