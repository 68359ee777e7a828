// What is frozen, and the adapters that are trained in its place.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

struct Net : Layer {
  Linear &fc1 = add("fc1", Linear(6, 4)), &fc2 = add("fc2", Linear(4, 3));
  Tensor forward(const Tensor &x) override { return fc2(relu(fc1(x))); }
};

/// The text of a model of the net, or its error.
std::string textOf(Net &net) {
  ModelBuilder model("test");
  model.predict({{"x", {kBatch, 6}}}, "y", net);
  Result<Model> finished = model.finish();
  return finished.ok() ? finished->text() : finished.message();
}

/// The line that declares a variable; "" if there is none.
std::string variable(const std::string &text, const std::string &name) {
  const size_t begin = text.find("gpuc.variable @" + name + " ");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

bool isFrozen(const std::string &text, const std::string &name) {
  return variable(text, name).find(" frozen ") != std::string::npos;
}

TEST(Freezing, HoldsForAllInside) {
  Net net;
  net.requiresGrad(false);
  net.fc2.requiresGrad(true);
  const std::string text = textOf(net);
  EXPECT_TRUE(isFrozen(text, "fc1.weight") && isFrozen(text, "fc1.bias")) << text;
  EXPECT_FALSE(isFrozen(text, "fc2.weight") || isFrozen(text, "fc2.bias")) << text;
}

TEST(Freezing, ComesBeforeTheModel) {
  Net net;
  ModelBuilder model("test");
  model.predict({{"x", {kBatch, 6}}}, "y", [&](Tensor x) {
    Tensor y = net(x);
    net.requiresGrad(false);
    return y + net(x);
  });
  Result<Model> finished = model.finish();
  ASSERT_FALSE(finished.ok());
  EXPECT_EQ(finished.message(),
            "fc1: parameter fc1.weight was read before it was frozen or set free; call requiresGrad first");
}

TEST(Lora, FreezesTheBaseAndTrainsAdapters) {
  Net net;
  EXPECT_EQ(addLora(net, {.rank = 2, .alpha = 3}), 2);
  const std::string text = textOf(net);
  for (const char *name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})
    EXPECT_TRUE(isFrozen(text, name)) << name;
  EXPECT_EQ(variable(text, "fc1.lora_A.weight"), "gpuc.variable @fc1.lora_A.weight : tensor<2x6xf32> init "
                                                 "kaiming_uniform(fan_in = 6) loc(\"fc1.lora_A\")");
  EXPECT_EQ(variable(text, "fc2.lora_B.weight"),
            "gpuc.variable @fc2.lora_B.weight : tensor<3x2xf32> init zeros loc(\"fc2.lora_B\")");
}

TEST(Lora, DropsWhatAdaptersSeeAlone) {
  Net net;
  addLora(net, {.dropout = 0.5});
  const std::string text = textOf(net);
  EXPECT_NE(text.find("gpuc.dropout %x p 5.000000e-01"), std::string::npos) << text;
  EXPECT_NE(text.find("gpuc.matmul %x, transpose %fc1 "), std::string::npos) << "the base sees all: " << text;
}

TEST(Lora, SummarySaysHowManyAreTrained) {
  Net net;
  addLora(net, {.rank = 1});
  ModelBuilder model("test");
  model.predict({{"x", {kBatch, 6}}}, "y", net);
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  EXPECT_NE(finished->summary().find("60 parameters (17 trained), 240 bytes"), std::string::npos)
      << finished->summary();
}

/// y = conv, then attention, then a table's row: of all, the attention's weights alone are adapted.
struct Mixed : Layer {
  MultiheadAttention &attention = add("attention", MultiheadAttention(6, 2));
  Conv2d &conv = add("conv", Conv2d(1, 2, 3));
  Tensor forward(const Tensor &x) override {
    return flatten(attention(x, x, x)) + flatten(conv(reshape(x, {kBatch, 1, 8, 6})));
  }
};

TEST(Lora, AdaptsPackedWeights) {
  Mixed net;
  EXPECT_EQ(addLora(net, {.rank = 2}), 2); // in_proj_weight and out_proj
  ModelBuilder model("test");
  model.predict({{"x", {kBatch, 8, 6}}}, "y", net);
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  const std::string text = finished->text();
  for (const char *name : {"attention.in_proj_weight", "attention.in_proj_bias", "attention.out_proj.weight"})
    EXPECT_TRUE(isFrozen(text, name)) << text;
  EXPECT_EQ(variable(text, "attention.lora_A.weight"),
            "gpuc.variable @attention.lora_A.weight : tensor<2x6xf32> init kaiming_uniform(fan_in = 6) "
            "loc(\"attention.lora_A\")");
  EXPECT_EQ(variable(text, "attention.lora_B.weight"),
            "gpuc.variable @attention.lora_B.weight : tensor<18x2xf32> init zeros loc(\"attention.lora_B\")");
  EXPECT_NE(variable(text, "attention.out_proj.lora_B.weight"), "") << text;
}

TEST(Lora, NamesWhatItLeavesOut) {
  Mixed net, freed;
  addLora(net);
  addLora(freed);
  freed.conv.requiresGrad(true);
  std::vector<std::vector<std::string>> leftOut;
  for (Mixed *each : {&net, &freed}) {
    ModelBuilder model("test");
    model.predict({{"x", {kBatch, 8, 6}}}, "y", *each);
    Result<Model> finished = model.finish();
    ASSERT_TRUE(finished.ok()) << finished.message();
    leftOut.push_back(finished->leftOut());
    EXPECT_EQ(finished->summary().find("frozen, with no adapter: conv.weight\n") != std::string::npos,
              each == &net);
  }
  EXPECT_EQ(leftOut, (std::vector<std::vector<std::string>>{{"conv.weight"}, {}}));
}

TEST(Lora, NamesItsMistakes) {
  Net zero, twice;
  addLora(zero, {.rank = 0});
  EXPECT_EQ(textOf(zero), "fc1: an adapter of rank 0; it is at least 1");
  addLora(twice);
  addLora(twice);
  EXPECT_NE(textOf(twice).find("two modules are named lora_"), std::string::npos) << textOf(twice);
}

} // namespace
} // namespace gpuc::nn
