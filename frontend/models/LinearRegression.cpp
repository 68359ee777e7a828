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

Result<nn::Model> build(Settings &settings) {
  const int64_t in = settings.integer("in", 1, 1 << 24), out = settings.integer("out", 1, 1 << 24);
  const int64_t batch = settings.integer("batch", 1, 1 << 30);
  const DataType dtype = settings.floatType("dtype");
  GPUC_RETURN_IF_ERROR(settings.status());

  nn::ModelBuilder model("linear-regression", dtype);
  Regression net(in, out);
  model.predict({{"x", {nn::kBatch, in}}}, "prediction", net);
  model.loss({{"y", {nn::kBatch, out}}},
             [](nn::Tensor prediction, nn::Tensor y) { return nn::mse(prediction, y); });
  model.recipe({.batch = batch, .optimizer = settings.text("optimizer")});
  return model.finish();
}

} // namespace

ZooModel linearRegression() {
  return {"linear-regression",
          "One linear layer, mean squared error",
          {{"in", "13", "features of a sample"},
           {"out", "1", "numbers to predict"},
           {"batch", "64", "rows a step"},
           {"optimizer", "sgd:lr=0.01", "NAME[:key=value,…], as gpuc-compile --optimizer"},
           {"dtype", "f32", "f32 or f64"}},
          build};
}

} // namespace gpuc::models
