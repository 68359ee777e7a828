// RNN, LSTM and GRU by the graph builder: their parameters and results, and what they refuse. Their numbers
// stand in test/end-to-end/recurrent_test.cpp.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

constexpr int64_t B = kBatch;

/// A model whose predict takes x [?, 7, 4] and other inputs and returns what `body` does; its text, or the
/// error.
std::string built(const std::vector<Input> &others, size_t outputs,
                  const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &body,
                  const Shape &x = {B, 7, 4}) {
  ModelBuilder model("test");
  std::vector<Input> inputs = {{"x", x}};
  inputs.insert(inputs.end(), others.begin(), others.end());
  std::vector<std::string> names = {"y", "hn", "cn"};
  names.resize(outputs);
  model.predictSeveral(inputs, names, body);
  Result<Model> finished = model.finish();
  return finished.ok() ? finished->text() : finished.message();
}

/// The model of one module.
template <typename ModuleType>
std::string built(ModuleType rnn, const std::vector<Input> &others = {},
                  const std::function<RecurrentInputs(const std::vector<Tensor> &)> &given = {},
                  const Shape &x = {B, 7, 4}) {
  return built(
      others, 1,
      [&](const std::vector<Tensor> &inputs) {
        return std::vector<Tensor>{rnn(inputs[0], given ? given(inputs) : RecurrentInputs()).output};
      },
      x);
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Recurrent, ParametersArePyTorchs) {
  std::string text = built(GRU(4, 9, {.layers = 2, .bidirectional = true}));
  // 1/√9; two directions of nine units go into the second layer.
  for (const char *line :
       {"@weight_ih_l0 : tensor<27x4xf32>", "@weight_hh_l0 : tensor<27x9xf32>",
        "@bias_ih_l0 : tensor<27xf32>", "@bias_hh_l0 : tensor<27xf32>",
        "@weight_ih_l0_reverse : tensor<27x4xf32>", "@weight_hh_l0_reverse : tensor<27x9xf32>",
        "@bias_ih_l0_reverse : tensor<27xf32>", "@bias_hh_l0_reverse : tensor<27xf32>",
        "@weight_ih_l1 : tensor<27x18xf32>", "@weight_hh_l1_reverse : tensor<27x9xf32>"})
    EXPECT_TRUE(has(text, std::string("gpuc.variable ") + line + " init uniform(bound = 0.3333333333333333"))
        << line;
  EXPECT_EQ(count(text, "gpuc.variable"), 16u);
  EXPECT_EQ(count(text, "gpuc.scan"), 4u);
  EXPECT_EQ(count(text, "batch_first reverse :"), 2u);
}

TEST(Recurrent, HasAGateForEachRow) {
  EXPECT_TRUE(has(built(RNN(4, 8)), "@weight_hh_l0 : tensor<8x8xf32>"));
  EXPECT_TRUE(has(built(RNN(4, 8)), "gpuc.tanh"));
  EXPECT_TRUE(has(built(RNN(4, 8, {}, /*relu=*/true)), "gpuc.relu"));
  EXPECT_TRUE(has(built(LSTM(4, 8)), "@weight_hh_l0 : tensor<32x8xf32>"));
  EXPECT_TRUE(has(built(GRU(4, 8)), "@weight_hh_l0 : tensor<24x8xf32>"));
  EXPECT_FALSE(has(built(LSTM(4, 8, {.bias = false})), "bias"));
}

TEST(Recurrent, GivesAndTakesStates) {
  LSTM lstm(4, 8, {.layers = 2, .bidirectional = true});
  const Shape states = {B, 4, 8};
  std::string text =
      built({{"h0", states}, {"c0", states}}, 3, [&](const std::vector<Tensor> &in) -> std::vector<Tensor> {
        Recurrence h = lstm(in[0], {.h0 = in[1], .c0 = in[2]});
        EXPECT_EQ(h.output.shape(), (Shape{B, 7, 16}));
        EXPECT_EQ(h.hn.shape(), states);
        EXPECT_EQ(h.cn.shape(), states);
        return {h.output, h.hn, h.cn};
      });
  EXPECT_TRUE(has(text, "tensor<?x4x8xf32> {gpuc.name = \"cn\"}")) << text;
}

TEST(Recurrent, TimeMayComeFirst) {
  GRU gru(4, 8, {.layers = 3, .batchFirst = false});
  built({{"h0", {3, 2, 8}}}, 2,
        [&](const std::vector<Tensor> &in) -> std::vector<Tensor> {
          Recurrence h = gru(in[0], {.h0 = in[1]});
          EXPECT_EQ(h.output.shape(), (Shape{7, 2, 8}));
          EXPECT_EQ(h.hn.shape(), (Shape{3, 2, 8}));
          EXPECT_FALSE(h.cn.valid());
          return {h.output, h.hn};
        },
        {7, 2, 4});
}

TEST(Recurrent, DropsOutBetweenLayers) {
  EXPECT_EQ(count(built(LSTM(4, 8, {.layers = 3, .dropout = 0.5})), "gpuc.dropout"), 2u);
  EXPECT_EQ(built(LSTM(4, 8, {.dropout = 0.5})), "predict: LSTM(4, 8, dropout=0.5) has dropout between "
                                                 "layers, but one layer: give it two, or put a Dropout "
                                                 "behind it");
  EXPECT_EQ(built(LSTM(4, 8, {.layers = 2, .dropout = 1})),
            "predict: dropout with probability 1; it lies in [0, 1)");
}

TEST(Recurrent, RefusesOtherSequences) {
  EXPECT_EQ(built(LSTM(5, 8)), "predict: LSTM(5, 8) takes [batch, time, 5], got [?, 7, 4]");
  EXPECT_EQ(built(RNN(4, 8, {}, /*relu=*/true), {}, {}, {B, 4}),
            "predict: RNN(4, 8, relu) takes [batch, time, 4], got [?, 4]");
  EXPECT_EQ(built(LSTM(4, 8), {}, {}, {B, 7, 4, 2}),
            "predict: LSTM(4, 8) takes [batch, time, 4], got [?, 7, 4, 2]");
  EXPECT_EQ(built(GRU(5, 8, {.batchFirst = false}), {}, {}, {7, 2, 4}),
            "predict: GRU(5, 8, batch_first=false) takes [time, batch, 5], got [7, 2, 4]");
  EXPECT_EQ(built(GRU(4, 8, {.batchFirst = false})), "predict: GRU(4, 8, batch_first=false) takes [time, "
                                                     "batch, 4] of known extents, got [?, 7, 4]; an unknown "
                                                     "batch leads, so take batch_first");
  EXPECT_EQ(built(GRU(4, 0)), "predict: GRU(4, 0) needs at least one input, one hidden unit and one layer");
  EXPECT_EQ(built(GRU(0, 8)), "predict: GRU(0, 8) needs at least one input, one hidden unit and one layer");
  EXPECT_EQ(built(GRU(4, 8, {.layers = 0})),
            "predict: GRU(4, 8, layers=0) needs at least one input, one hidden unit and one layer");
  EXPECT_EQ(
      built({{"i", {B, 7, 4}, DataType::i32}}, 1,
            [](const std::vector<Tensor> &in) { return std::vector<Tensor>{LSTM(4, 8)(in[1]).output}; }),
      "predict: LSTM(4, 8) takes f32, got i32; convert with to()");
}

TEST(Recurrent, RefusesOtherStates) {
  auto h0 = [](const std::vector<Tensor> &in) { return RecurrentInputs{.h0 = in[1]}; };
  auto both = [](const std::vector<Tensor> &in) { return RecurrentInputs{.h0 = in[1], .c0 = in[1]}; };
  EXPECT_EQ(built(GRU(4, 8, {.layers = 2}), {{"h0", {B, 8}}}, h0),
            "predict: GRU(4, 8, layers=2) takes h0 [?, 2, 8] of f32, got [?, 8] of f32");
  EXPECT_EQ(built(GRU(4, 8, {.bidirectional = true}), {{"h0", {B, 2, 8}, DataType::f64}}, h0),
            "predict: GRU(4, 8, bidirectional) takes h0 [?, 2, 8] of f32, got [?, 2, 8] of f64");
  EXPECT_EQ(built(GRU(4, 8, {.batchFirst = false}), {{"h0", {2, 1, 8}}}, h0, {7, 2, 4}),
            "predict: GRU(4, 8, batch_first=false) takes h0 [1, 2, 8] of f32, got [2, 1, 8] of f32");
  EXPECT_EQ(built(LSTM(4, 8), {{"h0", {B, 1, 8}}}, h0),
            "predict: LSTM(4, 8) takes h0 and c0 together, got h0 alone");
  EXPECT_EQ(built(RNN(4, 8), {{"h0", {B, 1, 8}}}, both),
            "predict: RNN(4, 8) has no c; only an LSTM takes c0");
  EXPECT_EQ(built(LSTM(4, 8), {{"h0", {B, 1, 9}}}, both),
            "predict: LSTM(4, 8) takes h0 [?, 1, 8] of f32, got [?, 1, 9] of f32");
  auto shortC = [](const std::vector<Tensor> &in) { return RecurrentInputs{.h0 = in[1], .c0 = in[2]}; };
  EXPECT_EQ(built(LSTM(4, 8), {{"h0", {B, 1, 8}}, {"c0", {B, 2, 8}}}, shortC),
            "predict: LSTM(4, 8) takes c0 [?, 1, 8] of f32, got [?, 2, 8] of f32");
}

TEST(Recurrent, RefusesInputsOfAnotherModel) {
  ModelBuilder other("other");
  other.predict({{"h", {B, 1, 8}}}, "y", [](Tensor outside) {
    auto h0 = [&](const std::vector<Tensor> &) { return RecurrentInputs{.h0 = outside}; };
    EXPECT_EQ(built(GRU(4, 8), {}, h0), "predict: h0 takes tensors of the function being built, got one of "
                                        "another; pass it as an input");
    auto lengths = [&](const std::vector<Tensor> &) { return RecurrentInputs{.lengths = outside}; };
    EXPECT_EQ(built(GRU(4, 8), {}, lengths),
              "predict: lengths takes tensors of the function being built, got "
              "one of another; pass it as an input");
    return outside;
  });
}

TEST(Recurrent, RefusesOtherLengths) {
  auto lengths = [](const std::vector<Tensor> &in) { return RecurrentInputs{.lengths = in[1]}; };
  EXPECT_TRUE(has(built(RNN(4, 8), {{"n", {B}, DataType::i64, 8}}, lengths), "gpuc.select"));
  EXPECT_EQ(built(RNN(4, 8), {{"n", {B}}}, lengths),
            "predict: RNN(4, 8) takes lengths [?] of i32 or i64, got [?] of f32");
  EXPECT_EQ(built(RNN(4, 8), {{"n", {B, 1}, DataType::i32, 8}}, lengths),
            "predict: RNN(4, 8) takes lengths [?] of i32 or i64, got [?, 1] of i32");
  EXPECT_EQ(built(RNN(4, 8, {.batchFirst = false}), {{"n", {7}, DataType::i32, 8}}, lengths, {7, 2, 4}),
            "predict: RNN(4, 8, batch_first=false) takes lengths [2] of i32 or i64, got [7] of i32");
}

} // namespace
} // namespace gpuc::nn
