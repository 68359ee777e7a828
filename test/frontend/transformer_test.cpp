// Transformer modules: PyTorch's names and shapes, the masks that reach attention, and errors.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

constexpr int64_t B = kBatch;

/// The text of a model whose predict takes x [?, 4, 6] and memory [?, 5, 6], or its error.
template <typename Body> std::string textOf(Body body) {
  ModelBuilder model("test");
  model.predict({{"x", {B, 4, 6}}, {"memory", {B, 5, 6}}}, "y", body);
  Result<Model> finished = model.finish();
  return finished.ok() ? finished->text() : finished.message();
}

/// "name : tensor<…>" of each variable, in order.
std::vector<std::string> variablesIn(const std::string &text) {
  std::vector<std::string> variables;
  const std::string start = "gpuc.variable @";
  for (size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const size_t begin = at + start.size(), end = text.find(" init", at);
    variables.push_back(text.substr(begin, end - begin));
  }
  return variables;
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Transformer, AnEncoderLayerHasPyTorchsParameters) {
  TransformerEncoderLayer layer({.width = 6, .heads = 2, .feedforward = 8});
  std::string text = textOf([&](Tensor x, Tensor) { return layer(x, {}); });
  EXPECT_EQ(
      variablesIn(text),
      (std::vector<std::string>{
          "self_attn.in_proj_weight : tensor<18x6xf32>", "self_attn.in_proj_bias : tensor<18xf32>",
          "self_attn.out_proj.weight : tensor<6x6xf32>", "self_attn.out_proj.bias : tensor<6xf32>",
          "norm1.weight : tensor<6xf32>", "norm1.bias : tensor<6xf32>", "linear1.weight : tensor<8x6xf32>",
          "linear1.bias : tensor<8xf32>", "linear2.weight : tensor<6x8xf32>", "linear2.bias : tensor<6xf32>",
          "norm2.weight : tensor<6xf32>", "norm2.bias : tensor<6xf32>"}))
      << text;
  EXPECT_EQ(count(text, "gpuc.dropout"), 3u); // behind attention, between the linear layers, behind them
  EXPECT_EQ(count(text, "dropout 1.0"), 1u) << text;
}

TEST(Transformer, ADecoderLayerSeesItselfCausallyAndMemoryThroughTheMask) {
  TransformerDecoderLayer layer({.width = 6, .heads = 3, .feedforward = 8, .dropout = 0});
  std::string text = textOf([&](Tensor x, Tensor memory) {
    Tensor seen = reshape(notEqual(select(memory, 2, 0), 0), {B, 1, 1, 5});
    return layer(x, memory, {.causal = true}, {.mask = seen});
  });
  EXPECT_EQ(count(text, " causal "), 1u) << text;
  EXPECT_EQ(count(text, "gpuc.attention"), 2u);
  EXPECT_EQ(count(text, "tensor<?x1x1x5xi1>) -> (tensor<?x3x4x2xf32>"), 1u);
  EXPECT_EQ(count(text, "gpuc.variable @multihead_attn.in_proj_weight : tensor<18x6xf32>"), 1u);
  EXPECT_EQ(count(text, "gpuc.variable @norm3.weight"), 1u);
  EXPECT_EQ(count(text, "gpuc.dropout"), 0u);
}

TEST(Transformer, StacksNumberTheirLayers) {
  TransformerEncoder encoder({.width = 6, .heads = 2, .feedforward = 8}, 2);
  std::string text = textOf([&](Tensor x, Tensor) { return encoder(x, {}); });
  EXPECT_EQ(count(text, "gpuc.variable @layers.1.self_attn.out_proj.weight"), 1u) << text;
  EXPECT_EQ(count(text, "gpuc.variable @norm.weight"), 1u);
  EXPECT_EQ(count(text, "loc(\"layers.0.linear1\")"), 7u) << text; // two variables, their reads, three ops
}

TEST(Transformer, NormFirstNormalisesBeforeEachBlock) {
  TransformerEncoderLayer layer({.width = 6, .heads = 2, .feedforward = 8, .dropout = 0, .normFirst = true});
  std::string text = textOf([&](Tensor x, Tensor) { return layer(x, {}); });
  EXPECT_LT(text.find("gpuc.layer_norm"), text.find("gpuc.attention"));
  EXPECT_EQ(text.find("gpuc.layer_norm", text.find("%linear2")), std::string::npos) << text;
}

TEST(Transformer, ErrorsNameTheModule) {
  TransformerEncoder encoder({.width = 6, .heads = 4, .feedforward = 8}, 1);
  EXPECT_EQ(textOf([&](Tensor x, Tensor) { return encoder(x, {}); }),
            "layers.0.self_attn: MultiheadAttention(6, 4) needs a width that its heads divide");
  MultiheadAttention attention(8, 2);
  EXPECT_EQ(textOf([&](Tensor x, Tensor) { return attention(x, x, x); }),
            "predict: MultiheadAttention(8, 2) takes [batch, length, 8], got [?, 4, 6]");
}

} // namespace
} // namespace gpuc::nn
