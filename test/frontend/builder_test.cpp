// What the graph builder makes: names, layouts, shapes, locations, summaries.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

#include <fstream>

namespace gpuc::nn {
namespace {

constexpr int64_t B = kBatch;

/// The text of a model whose predict takes x of this shape.
template <typename Body> std::string textOf(Shape shape, Body body) {
  ModelBuilder model("test");
  model.predict({{"x", std::move(shape)}}, "y", body);
  Result<Model> finished = model.finish();
  EXPECT_TRUE(finished.ok()) << finished.message();
  return finished.ok() ? finished->text() : "";
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

#define EXPECT_HAS(text, part) EXPECT_EQ(count(text, part), 1u) << (part) << "\nin\n" << (text)

struct Block : Layer {
  Linear &fc = add("fc", Linear(4, 4, /*bias=*/false));
  Sequential &tail = add("tail", Sequential(ReLU(), named("out", Linear(4, 4))));
  Tensor forward(const Tensor &x) override { return tail(fc(x)); }
};

struct Net : Layer {
  Block &first = add("first", Block());
  Block &second = add("second", Block());
  Tensor forward(const Tensor &x) override { return second(first(x)); }
};

TEST(Builder, NamesParametersByTheirPath) {
  Net net;
  std::string text = textOf({B, 4}, [&](Tensor x) { return net(x); });
  for (const char *name :
       {"first.fc.weight", "first.tail.out.weight", "first.tail.out.bias", "second.fc.weight"})
    EXPECT_HAS(text, std::string("gpuc.variable @") + name + " : ");
  EXPECT_EQ(count(text, "fc.bias"), 0u);
  EXPECT_HAS(text, "gpuc.relu %first.fc_0 : tensor<?x4xf32> loc(\"first.tail.0\")");
}

TEST(Builder, PathsSurviveAMove) {
  struct Outer : Layer {
    Net &net = add("net", Net());
    Tensor forward(const Tensor &x) override { return net(x); }
  };
  Outer outer;
  Outer moved = std::move(outer);
  EXPECT_HAS(textOf({B, 4}, [&](Tensor x) { return moved(x); }),
             "gpuc.variable @net.second.tail.out.bias : ");
}

TEST(Builder, ALayerCalledTwiceSharesItsParameters) {
  Linear fc(4, 4);
  std::string text = textOf({B, 4}, [&](Tensor x) { return fc(fc(x)); });
  EXPECT_HAS(text, "gpuc.variable @weight : ");
  EXPECT_EQ(count(text, "gpuc.read @weight"), 2u);
}

TEST(Builder, ABlockThatIsComputedAgainKeepsItsNames) {
  struct Blocks : Layer {
    Block &first = add("first", nn::Checkpoint(Block()));
    Sequential &rest = add("rest", Sequential(named("second", nn::Checkpoint(Block())), Linear(4, 4),
                                              nn::Checkpoint(Sequential(ReLU(), Linear(4, 2)))));
    Tensor forward(const Tensor &x) override { return rest(first(first(x))); }
  };
  Blocks before;
  Blocks net = std::move(before);
  ModelBuilder model("test");
  model.predict({{"x", {B, 4}}}, "y", net);
  model.loss({{"t", {B, 2}}}, [](Tensor y, Tensor t) { return mse(y, t); });
  model.recipe({.batch = 4, .optimizer = "sgd:lr=0.1"});
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  const std::string text = finished->text();
  // Each block once, in the order of its first call, before the recipe.
  EXPECT_HAS(text, R"(  gpuc.checkpoint "first" loc("first")
  gpuc.checkpoint "rest.second" loc("rest.second")
  gpuc.checkpoint "rest.2" loc("rest.2")
  gpuc.recipe {)");
  EXPECT_EQ(count(text, "gpuc.checkpoint"), 3u);
  for (const char *name : {"first.fc.weight", "rest.second.tail.out.bias", "rest.2.1.weight"})
    EXPECT_HAS(text, std::string("gpuc.variable @") + name + " : ");
}

TEST(Builder, ARecipeSaysAllThatOneCan) {
  ModelBuilder model("test");
  Linear net(4, 2);
  model.predict({{"x", {B, 4}}}, "y", net);
  model.loss({{"t", {B, 2}}}, [](Tensor y, Tensor t) { return mse(y, t); });
  model.recipe({.batch = 4,
                .optimizer = "sgd:lr=0.1",
                .entries = {{"clip_norm", "1"},
                            {"schedule", "linear:total_iters=5,steps=5"},
                            {"schedule", "cosine:T_max=9"},
                            {"groups", "group:match=weight,lr=0.2"},
                            {"precision", "bf16"},
                            {"accumulate", "2"},
                            {"ema", "ema:decay=0.9"}}});
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  const std::string text = finished->text();
  for (const char *entry :
       {"batch = 4", "accumulate = 2", "precision = bf16", "clip_norm = 1", "optimizer = sgd(lr = 0.1)",
        "groups = group(lr = 0.2, match = \"weight\")",
        "schedule = (linear(steps = 5, total_iters = 5), cosine(T_max = 9))", "ema = ema(decay = 0.9)"})
    EXPECT_HAS(text, entry);
}

TEST(Builder, AModuleOfSeveralInputsIsABlockToo) {
  struct Encoder : Module {
    TransformerEncoderLayer &layer =
        add("layer", nn::Checkpoint(TransformerEncoderLayer({.width = 8, .heads = 2})));
    TransformerEncoderLayer &plain = add("plain", TransformerEncoderLayer({.width = 8, .heads = 2}));
    Tensor operator()(const Tensor &x) { return plain(layer(x, {}), {}); }
  };
  Encoder encoder;
  EXPECT_HAS(textOf({B, 3, 8}, [&](Tensor x) { return encoder(x); }), "gpuc.checkpoint");
  // And whatever is there already becomes one, or none.
  encoder.layer.checkpoint(false);
  encoder.plain.checkpoint(true);
  EXPECT_HAS(textOf({B, 3, 8}, [&](Tensor x) { return encoder(x); }), "gpuc.checkpoint \"plain\"");
}

TEST(Builder, LinearTakesTokens) {
  Linear fc(4, 6);
  EXPECT_HAS(textOf({B, 5, 4}, [&](Tensor x) { return fc(x); }),
             "(tensor<?x5x4xf32>, tensor<6x4xf32>) -> tensor<?x5x6xf32>");
}

TEST(Builder, BroadcastsAsPyTorchDoes) {
  // A missing dimension, and one of extent 1, which gpuc.broadcast does not have: (1, 3) is reshaped to (3).
  std::string text =
      textOf({B, 2, 3}, [](Tensor x) { return x + sum(x, {0, 1}) + reshape(sum(x, {0, 1}), {1, 3}); });
  EXPECT_EQ(count(text, "dims [2] : tensor<3xf32> to tensor<?x2x3xf32>"), 2u) << text;
  // Each operand may be the one that repeats: (?, 1, 3) + (?, 2, 3).
  EXPECT_HAS(textOf({B, 2, 3}, [](Tensor x) { return reshape(sum(x, {1}), {B, 1, 3}) + x; }),
             "dims [0, 2] : tensor<?x3xf32> to tensor<?x2x3xf32>");
}

TEST(Builder, ReshapeInfersTheOpenExtent) {
  EXPECT_HAS(textOf({B, 2, 6}, [](Tensor x) { return reshape(x, {-1, 12}); }), "to tensor<?x12xf32>");
  EXPECT_HAS(textOf({B, 2, 6}, [](Tensor x) { return reshape(x, {B, 3, -1}); }), "to tensor<?x3x4xf32>");
  EXPECT_HAS(textOf({4, 6}, [](Tensor x) { return reshape(x, {-1, 8}); }), "to tensor<3x8xf32>");
  EXPECT_HAS(textOf({B, 2, 3, 4}, [](Tensor x) { return flatten(x, -2); }), "to tensor<?x2x12xf32>");
}

TEST(Builder, EachFunctionIsItsOp) {
  using Function = Tensor (*)(const Tensor &);
  const std::pair<Function, const char *> functions[] = {
      {abs, "abs"}, {exp, "exp"},   {log, "log"},   {sqrt, "sqrt"},       {sin, "sin"},   {cos, "cos"},
      {erf, "erf"}, {tanh, "tanh"}, {relu, "relu"}, {sigmoid, "sigmoid"}, {silu, "silu"}, {operator-, "neg"}};
  for (auto [function, op] : functions)
    EXPECT_HAS(textOf({B, 3}, function), std::string("= gpuc.") + op + " %x");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return clamp(x, -1, 2); }), "gpuc.clamp %x low");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return gelu(x, true); }), "gpuc.gelu %x approximate");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return softmax(x); }), "gpuc.softmax %x dim 1");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return logSoftmax(x); }), "gpuc.log_softmax %x dim 1");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return mean(x, {-1}); }), "gpuc.mean %x dims [1]");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return sort(x).values; }), "gpuc.sort %x dim 1 :");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return sort(x, 1, true).indices; }),
             "gpuc.sort %x dim 1 descending");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return topK(x, 2).values; }), "gpuc.top_k %x k 2 dim 1 :");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return topK(x, 2, -1, false).indices; }),
             "gpuc.top_k %x k 2 dim 1 smallest");
  EXPECT_HAS(textOf({B, 3, 4}, [](Tensor x) { return transpose(x, 1, 2); }),
             "gpuc.transpose %x permutation [0, 2, 1]");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return 1 / x; }), "gpuc.div %predict, %x");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return pow(x, 3); }), "gpuc.pow %x, %predict");
  EXPECT_HAS(textOf({B, 3}, [](Tensor x) { return maximum(x, minimum(x, -x)); }), "gpuc.min %x, %predict");
}

TEST(Builder, RandomIdsAreUnique) {
  std::string text = textOf({B, 3}, [](Tensor x) { return dropout(dropout(x, 0.5), 0.5); });
  EXPECT_HAS(text, "id 0 ");
  EXPECT_HAS(text, "id 1 ");
}

TEST(Builder, SeveralInputsAndF64) {
  ModelBuilder model("test", DataType::f64);
  model.predict({{"a", {B, 3}}, {"b", {B, 3}}}, "y", [](Tensor a, Tensor b) { return a * b; });
  model.loss({{"t", {B, 3}}}, [](Tensor y, Tensor t) { return mse(y, t); });
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  EXPECT_HAS(finished->text(), "%predict = call @predict(%a, %b) : (tensor<?x3xf64>, tensor<?x3xf64>)");
  EXPECT_HAS(finished->text(),
             "(tensor<f64> {gpuc.name = \"loss_sum\"}, tensor<f64> {gpuc.name = \"count\"})");
}

TEST(Builder, SummaryAddsUpParametersAndFlops) {
  // Per sample: each Linear(4, 4) 2·4·4 = 32, its bias 4, the ReLU 4. Parameters: 16, and with the bias 20.
  Net net;
  ModelBuilder model("nest");
  model.predict({{"x", {B, 4}}}, "y", net);
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  EXPECT_EQ(finished->summary(), R"(layer                               output  parameters  FLOPs
nest                                [?, 4]          72    144
├─ first  Module                    [?, 4]          36     72
│  ├─ fc  Linear(4, 4, bias=false)  [?, 4]          16     32
│  └─ tail  Sequential              [?, 4]          20     40
│     ├─ 0  ReLU                    [?, 4]           0      4
│     └─ out  Linear(4, 4)          [?, 4]          20     36
└─ second  Module                   [?, 4]          36     72
   ├─ fc  Linear(4, 4, bias=false)  [?, 4]          16     32
   └─ tail  Sequential              [?, 4]          20     40
      ├─ 0  ReLU                    [?, 4]           0      4
      └─ out  Linear(4, 4)          [?, 4]          20     36
72 parameters, 288 bytes as f32; FLOPs of predict for one sample
)");
}

TEST(Builder, SummaryCountsSharedParametersOnce) {
  Sequential net(named("fc", Linear(4, 4)));
  ModelBuilder model("twice");
  model.predict({{"x", {B, 4}}}, "y", [&](Tensor x) { return net(net(x)); });
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  EXPECT_EQ(finished->summary(), R"(layer                output  parameters  FLOPs
twice                [?, 4]          20     72
├─ fc  Linear(4, 4)  [?, 4]          20     36
└─ fc  Linear(4, 4)  [?, 4]      shared     36
20 parameters, 80 bytes as f32; FLOPs of predict for one sample
)");
}

TEST(Builder, WritesTheTextInFull) {
  ModelBuilder model("test");
  model.predict({{"x", {B, 4}}}, "y", [](Tensor x) { return relu(x); });
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  const std::string path = testing::TempDir() + "/builder_test.mlir";
  ASSERT_TRUE(finished->write(path).ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), finished->text());
  EXPECT_EQ(finished->write(testing::TempDir() + "/none/x.mlir").ok(), false);
}

} // namespace
} // namespace gpuc::nn
