//===- LinearRegression.cpp - y = x · wᵀ + b --------------------------------===//

#include "frontend/builder/nn.h"
#include "frontend/models/Zoo.h"

namespace gpuc::models {

namespace {

struct Regression : nn::Layer {
  Regression(int64_t in, int64_t out) : linear(add("linear", nn::Linear(in, out))) {}
  nn::Tensor forward(const nn::Tensor &x) override { return linear(x); }

  nn::Linear &linear;
};

Status build(Settings &settings, nn::ModelBuilder &model) {
  const int64_t in = settings.integer("in", 1, 1 << 24), out = settings.integer("out", 1, 1 << 24);
  GPUC_RETURN_IF_ERROR(settings.status());

  Regression net(in, out);
  model.predict({{"x", {nn::kBatch, in}}}, "prediction", net);
  model.loss({{"y", {nn::kBatch, out}}},
             [](nn::Tensor prediction, nn::Tensor y) { return nn::mse(prediction, y); });
  return okStatus();
}

} // namespace

ZooModel linearRegression() {
  return {"linear-regression",
          "One linear layer, mean squared error",
          {{"in", "13", "features of a sample"}, {"out", "1", "numbers to predict"}},
          {.optimizer = "sgd:lr=0.01"},
          build};
}

} // namespace gpuc::models
