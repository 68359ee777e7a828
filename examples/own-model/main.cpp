// A model of one's own: what it computes, what is minimised, how it is trained. Writes it as .mlir.
#include "frontend/builder/nn.h"

#include <cstdio>

using namespace gpuc;

struct Net : nn::Layer {
  nn::Linear &fc1 = add("fc1", nn::Linear(28 * 28, 256));
  nn::Dropout &dropout = add("dropout", nn::Dropout(0.2));
  nn::Linear &fc2 = add("fc2", nn::Linear(256, 10));

  nn::Tensor forward(const nn::Tensor &image) override {
    nn::Tensor x = flatten(image.to(DataType::f32) / 255);
    return fc2(dropout(gelu(fc1(x))));
  }
};

int main(int argc, char **argv) {
  Net net;
  nn::ModelBuilder model("own_model");
  model.predict({{"x", {nn::kBatch, 1, 28, 28}, DataType::ui8}}, "logits", net);

  const nn::Input labels = {"labels", {nn::kBatch}, DataType::i32, /*range=*/10};
  model.loss({labels}, [](nn::Tensor logits, nn::Tensor labels) { return nn::crossEntropy(logits, labels); });
  model.accuracy({labels}, [](nn::Tensor logits, nn::Tensor labels) { return nn::accuracy(logits, labels); });
  model.recipe({.batch = 64, .optimizer = "adamw:lr=1e-3"});

  Result<nn::Model> finished = model.finish();
  Status status = finished.ok() ? finished->write(argc > 1 ? argv[1] : "-") : finished.status();
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
