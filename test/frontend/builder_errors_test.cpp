// Each mistake in a model is found when it is built: one line that names the layer and both shapes.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

constexpr int64_t B = kBatch;

std::string errorOf(ModelBuilder &model) {
  Result<Model> finished = model.finish();
  EXPECT_FALSE(finished.ok()) << "no error";
  EXPECT_EQ(finished.message().find('\n'), std::string::npos);
  return finished.message();
}

/// The error of a model whose predict takes x [?, 4, 6], i [?] i32 and w [3, 6].
template <typename Body> std::string predictError(Body body) {
  ModelBuilder model("test");
  model.predict({{"x", {B, 4, 6}}, {"i", {B}, DataType::i32}, {"w", {3, 6}}}, "y", body);
  return errorOf(model);
}

TEST(BuilderErrors, LayersNameThemselvesAndBothShapes) {
  Sequential net(named("fc1", Linear(784, 128)), named("fc2", Linear(64, 10)));
  ModelBuilder model("test");
  model.predict({{"x", {B, 784}}}, "y", net);
  EXPECT_EQ(errorOf(model), "fc2: Linear(64, 10) takes [?, …, 64], got [?, 128]");

  Linear fc(6, 2);
  EXPECT_EQ(predictError([&](Tensor x, Tensor, Tensor) { return fc(sum(x, {1, 2})); }),
            "predict: Linear(6, 2) takes [?, …, 6], got [?]");
  EXPECT_EQ(predictError([&](Tensor, Tensor, Tensor w) { return fc(w.to(DataType::f64)); }),
            "predict: Linear(6, 2) takes f32, got f64; convert with to()");
  Linear empty(6, 0);
  EXPECT_EQ(predictError([&](Tensor, Tensor, Tensor w) { return empty(w); }),
            "predict: Linear(6, 0) needs at least one input and one output");
}

TEST(BuilderErrors, BlocksThatAreComputedAgain) {
  nn::Checkpoint whole(Linear(6, 2));
  EXPECT_EQ(predictError([&](Tensor, Tensor, Tensor w) { return whole(w); }),
            "predict: a whole model is no block that is computed again; its layers may be");
  for (const char *name : {"h*", "h?", "h[0]", "h,0", "h\\0"}) {
    Sequential net(named(name, nn::Checkpoint(Linear(6, 2))));
    EXPECT_EQ(predictError([&](Tensor, Tensor, Tensor w) { return net(w); }),
              name + std::string(": a block that is computed again cannot be named so: *, ?, [, ], \\ and "
                                 "commas are those of patterns"));
  }
}

TEST(BuilderErrors, TheFirstOneStays) {
  EXPECT_EQ(predictError([](Tensor x, Tensor i, Tensor w) { return matmul(relu(x + w), exp(i)); }),
            "predict: add of [?, 4, 6] and [3, 6]: the shapes do not broadcast to one another");
}

TEST(BuilderErrors, Pointwise) {
  EXPECT_EQ(predictError([](Tensor x, Tensor i, Tensor) { return x * i; }),
            "predict: mul takes operands of one element type, got f32 and i32; convert one with to()");
  EXPECT_EQ(predictError([](Tensor, Tensor i, Tensor) { return i.to(DataType::i1) + i.to(DataType::i1); }),
            "predict: add takes numbers, got i1");
  EXPECT_EQ(predictError([](Tensor, Tensor i, Tensor) { return relu(i); }),
            "predict: relu takes floating point, got i32; convert with to()");
  EXPECT_EQ(predictError([](Tensor, Tensor i, Tensor) { return i * 2; }),
            "predict: arithmetic with a number takes floating point, got i32; convert with to()");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return clamp(x, 2, 1); }),
            "predict: clamp to [2, 1]: the lower bound is above the upper");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return dropout(x, 1); }),
            "predict: dropout with probability 1; it lies in [0, 1)");
}

TEST(BuilderErrors, Shapes) {
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return reshape(x, {B, 25}); }),
            "predict: reshape of [?, 4, 6] to [?, 25]: the number of elements differs");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return reshape(x, {-1, 12}); }),
            "predict: reshape of [?, 4, 6] to [-1, 12]: the number of elements differs");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return reshape(x, {24, -1}); }),
            "predict: reshape of [?, 4, 6] to [24, -1]: the number of elements differs");
  EXPECT_EQ(predictError([](Tensor, Tensor, Tensor w) { return reshape(w, {-1, -1}); }),
            "predict: reshape to [-1, -1]: extents are at least 0, but for one -1 and a leading kBatch");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return flatten(x, 3); }),
            "predict: flatten along dimension 3 of [?, 4, 6], which has 3");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return flatten(x, 0); }),
            "predict: flatten of [?, 4, 6] from dimension 0 would merge the batch; begin at 1");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return transpose(x, 0, 1); }),
            "predict: transpose of [?, 4, 6] would move the batch, which stays first");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return transpose(x, 1, -4); }),
            "predict: transpose along dimension -4 of [?, 4, 6], which has 3");
  EXPECT_EQ(predictError([](Tensor, Tensor, Tensor w) { return broadcastTo(w, {4, 6}); }),
            "predict: broadcast of [3, 6] to [4, 6]: an extent is neither 1 nor equal");
}

TEST(BuilderErrors, ContractionsAndReductions) {
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor w) { return matmul(x, w); }),
            "predict: matmul of [?, 4, 6] and [3, 6]: the contracted dimensions differ");
  EXPECT_EQ(predictError([](Tensor, Tensor, Tensor w) { return matmul(w, w); }),
            "predict: matmul of [3, 6] and [3, 6]: the contracted dimensions differ");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor w) { return matmul(x, reshape(w, {3, 6, 1})); }),
            "predict: matmul of [?, 4, 6] and [3, 6, 1]: the leading dimensions differ");
  EXPECT_EQ(predictError([](Tensor, Tensor i, Tensor w) { return matmul(w, i); }),
            "predict: matmul takes operands of one floating-point type, got f32 and i32");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return sum(x, {1, -2}); }),
            "predict: sum twice along dimension -2 of [?, 4, 6], which has 3");
  EXPECT_EQ(predictError([](Tensor, Tensor i, Tensor) { return mean(i, {0}); }),
            "predict: mean takes floating point, got i32; convert with to()");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return softmax(x, 3); }),
            "predict: softmax along dimension 3 of [?, 4, 6], which has 3");
  EXPECT_EQ(predictError([](Tensor, Tensor i, Tensor) { return logSoftmax(i, 0); }),
            "predict: logSoftmax takes floating point, got i32; convert with to()");
}

TEST(BuilderErrors, Order) {
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return sort(x, 3).values; }),
            "predict: sort along dimension 3 of [?, 4, 6], which has 3");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return sort(x, 0).values; }),
            "predict: sort along the batch of [?, 4, 6]: samples do not know their neighbours");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return topK(x.to(DataType::i1), 1).values; }),
            "predict: topK takes numbers, got i1");
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return topK(x, 7).values; }),
            "predict: topK of [?, 4, 6] with k = 7: dimension -1 has 6");
}

TEST(BuilderErrors, TensorsOfNoFunctionOrAnother) {
  EXPECT_EQ(predictError([](Tensor x, Tensor, Tensor) { return x + Tensor(); }),
            "predict: add takes a tensor of the model, got an empty one");
  EXPECT_EQ(predictError([](Tensor, Tensor, Tensor) { return Tensor(); }),
            "predict: predict's output takes a tensor of the model, got an empty one");

  Tensor kept;
  ModelBuilder model("test");
  model.predict({{"x", {B, 4}}}, "y", [&](Tensor x) { return kept = x; });
  model.loss({}, [&](Tensor y) { return mse(y, kept); });
  EXPECT_EQ(errorOf(model),
            "loss: mse takes tensors of the function being built, got one of another; pass it as an input");
}

TEST(BuilderErrors, Modules) {
  struct Twice : Layer {
    Linear &a = add("fc", Linear(4, 4)), &b = add("fc", Linear(4, 4));
    Tensor forward(const Tensor &x) override { return b(a(x)); }
  };
  auto error = [](auto &net) {
    ModelBuilder model("test");
    model.predict({{"x", {B, 4}}}, "y", net);
    return errorOf(model);
  };
  Twice twice;
  EXPECT_EQ(error(twice), "predict: two modules are named fc; their parameters would be one");
  Sequential dotted(named("a.b", ReLU()));
  EXPECT_EQ(error(dotted),
            "predict: a module cannot be named \"a.b\": names are not empty and hold no dot, slash or quote");

  Linear first(4, 4), second(4, 4);
  ModelBuilder model("test");
  model.predict({{"x", {B, 4}}}, "y", [&](Tensor x) { return second(first(x)); });
  EXPECT_EQ(errorOf(model), "predict: parameter weight belongs to two modules; give each a name with add()");
}

TEST(BuilderErrors, Inputs) {
  auto error = [](std::vector<Input> inputs) {
    ModelBuilder model("test");
    model.predict(inputs, "y", [](Tensor a, Tensor b) { return a; });
    return errorOf(model);
  };
  EXPECT_EQ(error({{"a", {B}}, {"a", {B}}}), "test: two inputs are named a");
  EXPECT_EQ(error({{"a", {B}}, {"", {B}}}), "test: an input has no name");
  EXPECT_EQ(error({{"a", {B}}, {"b", {3, B}}}),
            "test: input b has shape [3, ?]; extents are at least 1, but for a leading kBatch");
  EXPECT_EQ(error({{"a", {B}}, {"b", {0}}}),
            "test: input b has shape [0]; extents are at least 1, but for a leading kBatch");
  EXPECT_EQ(error({{"a", {B}}, {"b", {B}, DataType::f32, 10}}),
            "test: input b has range 10; only integers have one, at least 1");
  EXPECT_EQ(error({{"a", {B}}}), "test: predict has 1 tensors, its function takes 2");
}

TEST(BuilderErrors, Losses) {
  auto error = [](Shape logits, Input target, auto loss) {
    ModelBuilder model("test");
    model.predict({{"x", std::move(logits)}}, "y", [](Tensor x) { return x; });
    model.loss({std::move(target)}, loss);
    return errorOf(model);
  };
  auto crossEntropyOf = [](Tensor y, Tensor t) { return crossEntropy(y, t); };
  EXPECT_EQ(error({B, 10}, {"t", {B, 1}, DataType::i32}, crossEntropyOf),
            "loss: crossEntropy takes logits [batch, classes] and labels [batch], got [?, 10] and [?, 1]");
  EXPECT_EQ(error({B, 10}, {"t", {B}}, crossEntropyOf),
            "loss: crossEntropy takes floating-point logits and i32 or i64 labels, got f32 and f32");
  EXPECT_EQ(error({B, 10}, {"t", {B}, DataType::i32},
                  [](Tensor y, Tensor t) { return crossEntropy(y, t, {.smoothing = 1}); }),
            "loss: crossEntropy with smoothing 1; it lies in [0, 1)");
  // A linear layer whose weight is the constant of so many classes, features and biases.
  auto linear = [&](std::vector<int64_t> weight, int64_t biases, CrossEntropyOptions options = {}) {
    return [=](Tensor y, Tensor t) {
      Tensor w = constant(y, weight, std::vector<double>(weight[0] * weight[1])),
             b = biases ? constant(y, {biases}, std::vector<double>(biases)) : Tensor();
      return linearCrossEntropy(y, w, b, t, options);
    };
  };
  const Input labels = {"t", {B}, DataType::i32};
  EXPECT_EQ(error({B, 10}, labels, linear({3, 9}, 0)),
            "loss: linearCrossEntropy takes hidden [batch, features], weight [classes, features] and labels "
            "[batch], got [?, 10], [3, 9] and [?]");
  EXPECT_EQ(error({B, 10}, {"t", {B}}, linear({3, 10}, 0)),
            "loss: linearCrossEntropy takes hidden and weight of one floating-point type and i32 or i64 "
            "labels, got f32, f32 and f32");
  EXPECT_EQ(
      error({B, 10}, labels, linear({3, 10}, 10)),
      "loss: linearCrossEntropy takes a bias [classes] of the type of the weight, [3, 10] f32, got [10] "
      "f32");
  EXPECT_EQ(error({B, 10}, labels, linear({3, 10}, 3, {.smoothing = -1})),
            "loss: linearCrossEntropy with smoothing -1; it lies in [0, 1)");
  EXPECT_EQ(
      error({B, 10}, {"t", {B, 10}, DataType::i32},
            [](Tensor y, Tensor t) { return linearAccuracy(y, sum(y, {0}), {}, t); }),
      "loss: linearAccuracy takes hidden [batch, features], weight [classes, features] and labels [batch], "
      "got [?, 10], [10] and [?, 10]");
  EXPECT_EQ(error({B, 10}, {"t", {B, 1}}, [](Tensor y, Tensor t) { return mse(y, t); }),
            "loss: mse takes a prediction and a target of one shape, got [?, 10] and [?, 1]");
  EXPECT_EQ(error({B, 10}, {"t", {B, 10}, DataType::f64}, [](Tensor y, Tensor t) { return mse(y, t); }),
            "loss: mse takes a prediction and a target of one floating-point type, got f32 and f64");
  EXPECT_EQ(
      error({B, 10}, {"t", {B, 10}}, [](Tensor y, Tensor t) { return Loss{sum(y, {0}), sum(t, {0, 1})}; }),
      "loss: sum and count are scalars of one floating-point type, got [10] f32 and [] f32");
  EXPECT_EQ(error({B, 10}, {"x", {B, 10}}, [](Tensor y, Tensor t) { return mse(y, t); }),
            "test: two inputs are named x");
}

TEST(BuilderErrors, OrderOfEntries) {
  auto identity = [](Tensor x) { return x; };
  auto zero = [](Tensor y) { return Loss{sum(y, {0, 1}), sum(y, {0, 1})}; };
  const std::vector<Input> x = {{"x", {B, 4}}};
  {
    ModelBuilder model("test");
    EXPECT_EQ(errorOf(model), "test: a model needs predict");
    model.predict(x, "y", identity); // spent, but harmless
    EXPECT_EQ(errorOf(model), "test: the model is finished already");
  }
  {
    ModelBuilder model("test");
    model.loss({}, zero);
    EXPECT_EQ(errorOf(model), "test: loss comes before predict; build predict first");
  }
  {
    ModelBuilder model("test");
    model.predict(x, "y", identity);
    model.predict(x, "y", identity);
    EXPECT_EQ(errorOf(model), "test: predict is built twice");
  }
  {
    ModelBuilder model("test");
    model.predict(x, "y", identity);
    model.accuracy({}, zero);
    model.accuracy({}, zero);
    EXPECT_EQ(errorOf(model), "test: accuracy is built twice");
  }
  {
    ModelBuilder model("test");
    model.predict(x, "y", identity);
    model.recipe({});
    EXPECT_EQ(errorOf(model), "test: a recipe needs a loss; build loss first");
  }
}

TEST(BuilderErrors, Recipes) {
  auto error = [](std::vector<Recipe> recipes) {
    ModelBuilder model("test");
    model.predict({{"x", {B, 4}}}, "y", [](Tensor x) { return x; });
    model.loss({}, [](Tensor y) { return Loss{sum(y, {0, 1}), sum(y, {0, 1})}; });
    for (const Recipe &recipe : recipes)
      model.recipe(recipe);
    return errorOf(model);
  };
  EXPECT_EQ(error({{.batch = 0}}), "test: recipe with batch 0; it is at least 1");
  EXPECT_EQ(error({{}, {}}), "test: recipe is given twice");
  EXPECT_EQ(error({{.optimizer = "adam:lr"}}),
            "test: optimizer: 'lr' in 'adam:lr' is not key=value: write NAME or NAME:key=value,…");
  EXPECT_EQ(error({{.optimizer = "adm:lr=1"}}),
            "test: unknown optimizer 'adm': the nearest is 'adam'; known are adadelta, adafactor, "
            "adagrad, adam, adamax, adamw, asgd, lion, muon, nadam, radam, rmsprop, rprop, sgd");
  EXPECT_EQ(error({{.optimizer = "sgd:lrr=1"}}).substr(0, 52),
            "test: optimizer sgd has no key 'lrr': the nearest is");
  EXPECT_EQ(error({{.entries = {{"clip_nrm", "1"}}}}).substr(0, 68),
            "test: recipe has no entry 'clip_nrm'; the nearest is 'clip_norm', al");
  EXPECT_EQ(error({{.entries = {{"optimizer", "sgd"}}}}).substr(0, 37),
            "test: recipe has no entry 'optimizer'");
  EXPECT_EQ(error({{.entries = {{"clip_norm", "many"}}}}), "test: clip_norm: 'many' is not a finite number");
  EXPECT_EQ(error({{.entries = {{"ema", "ema:decay=0.9"}, {"ema", "ema:decay=0.8"}}}}),
            "test: ema: given twice, 'ema:decay=0.9' and 'ema:decay=0.8'");
  EXPECT_EQ(error({{.entries = {{"world_size", "2"}}}}).substr(0, 5), "test:"); // what its verifier says
}

TEST(BuilderErrors, ParametersAreF32OrF64) {
  ModelBuilder model("test", DataType::bf16);
  EXPECT_EQ(errorOf(model), "test: parameters are f32 or f64, not bf16");
}

/// A layer with one parameter of this name and shape.
struct Scale : Layer {
  Scale(std::string name, Shape shape) : name(std::move(name)), shape(std::move(shape)) {}
  Tensor forward(const Tensor &x) override { return x * parameter(x, name, shape, Initializer::ones()); }

  std::string name;
  Shape shape;
};

TEST(BuilderErrors, Parameters) {
  auto error = [](Layer &net) {
    ModelBuilder model("test");
    model.predict({{"x", {B, 4}}}, "y", net);
    return errorOf(model);
  };
  Scale batched("scale", {B, 4}), empty("scale", {0});
  EXPECT_EQ(error(batched), "predict: parameter scale has shape [?, 4]; extents are at least 1");
  EXPECT_EQ(error(empty), "predict: parameter scale has shape [0]; extents are at least 1");

  Scale growing("scale", {1});
  ModelBuilder model("test");
  model.predict({{"x", {B, 4}}}, "y", [&](Tensor x) {
    Tensor y = growing(x);
    growing.shape = {4};
    return growing(y);
  });
  EXPECT_EQ(errorOf(model), "predict: parameter scale has shape [1], asked for [4]");
}

TEST(BuilderErrors, WhatTheBuilderMissesTheVerifierFinds) {
  // A variable and a function share the module's names.
  Scale net("predict", {4});
  ModelBuilder model("test");
  model.predict({{"x", {B, 4}}}, "y", net);
  EXPECT_EQ(errorOf(model),
            "test: layer predict: redefinition of symbol named 'predict'; layer predict: see existing symbol "
            "definition here");
}

} // namespace
} // namespace gpuc::nn
