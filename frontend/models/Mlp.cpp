//===- Mlp.cpp - Multilayer perceptron --------------------------------------===//

#include "frontend/models/Classification.h"
#include "frontend/models/Zoo.h"

#include <functional>
#include <numeric>

namespace gpuc::models {

namespace {

struct Options {
  nn::Shape input;             // of one sample
  std::vector<int64_t> hidden; // units of each hidden layer
  int64_t classes = 10;
  size_t activation = 0; // index into kActivations
  double dropout = 0;
};

const std::vector<std::string> kActivations = {"relu", "leaky_relu", "gelu",   "gelu_tanh",
                                               "silu", "tanh",       "sigmoid"};

nn::NamedLayer activation(size_t index, const std::string &name) {
  switch (index) {
  case 0:
    return nn::named(name, nn::ReLU());
  case 1:
    return nn::named(name, nn::LeakyReLU());
  case 2:
    return nn::named(name, nn::GELU());
  case 3:
    return nn::named(name, nn::GELU(/*approximate=*/true));
  case 4:
    return nn::named(name, nn::SiLU());
  case 5:
    return nn::named(name, nn::Tanh());
  default:
    return nn::named(name, nn::Sigmoid());
  }
}

int64_t product(const nn::Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

/// fc1 act1 [dropout1] fc2 … fcN: every Linear but the last is followed by its activation.
nn::Sequential layers(const Options &options) {
  nn::Sequential net;
  int64_t width = product(options.input);
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    net.append(nn::named("fc" + number, nn::Linear(width, options.hidden[i])));
    net.append(activation(options.activation, "act" + number));
    if (options.dropout > 0)
      net.append(nn::named("dropout" + number, nn::Dropout(options.dropout)));
    width = options.hidden[i];
  }
  net.append(nn::named("fc" + std::to_string(options.hidden.size() + 1), nn::Linear(width, options.classes)));
  return net;
}

Status build(Settings &settings, nn::ModelBuilder &model) {
  Options options;
  options.input = settings.integers("input", 'x', 1 << 16);
  options.hidden = settings.integers("hidden", ',', 1 << 24, /*orNone=*/true);
  options.classes = settings.integer("classes", 1, 1 << 24);
  options.activation = settings.choice("activation", kActivations);
  options.dropout = settings.number("dropout", 0, 1);
  const double smoothing = settings.number("smoothing", 0, 1);
  const bool pixels = settings.flag("pixels");
  GPUC_RETURN_IF_ERROR(settings.status());
  if (options.input.size() > 3 || product(options.input) > 1 << 24)
    return Status::error("input=" + settings.text("input") + ": at most 3 extents and 2^24 numbers");

  nn::Sequential net = layers(options);
  if (pixels) {
    nn::Shape image = options.input;
    image.insert(image.begin(), nn::kBatch);
    nn::Sequential front(nn::named("scale", PixelsToUnit(model.floats())),
                         nn::named("flatten", nn::Flatten()));
    model.predict({{"x", image, DataType::ui8}}, "logits", [&](nn::Tensor x) { return net(front(x)); });
  } else {
    model.predict({{"x", {nn::kBatch, product(options.input)}}}, "logits", net);
  }

  classify(model, options.classes, smoothing);
  return okStatus();
}

} // namespace

ZooModel mlp() {
  return {
      "mlp",
      "Multilayer perceptron that classifies images, cross-entropy",
      {{"input", "1x28x28", "shape of a sample, extents joined by x"},
       {"hidden", "128", "units of each hidden layer: 128, or 256,128 for two, or none"},
       {"classes", "10", "classes to tell apart"},
       {"activation", "relu", "relu, leaky_relu, gelu, gelu_tanh, silu, tanh or sigmoid"},
       {"dropout", "0", "probability in [0, 1) after each activation"},
       {"smoothing", "0", "label smoothing in [0, 1)"},
       {"pixels", "true", "true: x is ui8, scaled to [0, 1]; false: x is floating point, a row a sample"}},
      {},
      build};
}

} // namespace gpuc::models
