// Parts of tensors, embeddings, several outputs, and losses that go their own way.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

constexpr int64_t B = kBatch;

/// The text of a model whose predict takes x [?, 4, 6] and ids [?, 5] i32, or its error.
template <typename Body> std::string textOf(Body body) {
  ModelBuilder model("test");
  model.predict({{"x", {B, 4, 6}}, {"ids", {B, 5}, DataType::i32}}, "y", body);
  Result<Model> finished = model.finish();
  return finished.ok() ? finished->text() : finished.message();
}

testing::AssertionResult has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos ? testing::AssertionSuccess()
                                              : testing::AssertionFailure() << part << "\nin\n"
                                                                            << text;
}

TEST(Parts, SlicesCountFromTheEndToo) {
  EXPECT_TRUE(has(textOf([](Tensor x, Tensor) { return slice(x, -1, 1, -1, 2); }),
                  "starts [0, 0, 1] limits [-1, -1, 5] strides [1, 1, 2] : (tensor<?x4x6xf32>) -> "
                  "tensor<?x4x2xf32>"));
}

TEST(Parts, SelectDropsTheDimension) {
  std::string text = textOf([](Tensor x, Tensor) { return select(x, 1, -1); });
  EXPECT_TRUE(has(text, "starts [0, 3, 0] limits [-1, 4, -1]"));
  EXPECT_TRUE(has(text, "tensor<?x1x6xf32> to tensor<?x6xf32>"));
}

TEST(Parts, ConcatAddsExtents) {
  EXPECT_TRUE(has(textOf([](Tensor x, Tensor) { return concat({x, slice(x, 1, 0, 1), x}, 1); }),
                  "dim 1 : (tensor<?x4x6xf32>, tensor<?x1x6xf32>, tensor<?x4x6xf32>) -> tensor<?x9x6xf32>"));
}

TEST(Parts, GatherPutsTheIndicesInPlaceOfTheDimension) {
  EXPECT_TRUE(has(textOf([](Tensor x, Tensor ids) {
                    return gather(constant(x, {7, 2}, std::vector<double>(14, 0.5)), ids);
                  }),
                  "dim 0 : (tensor<7x2xf32>, tensor<?x5xi32>) -> tensor<?x5x2xf32>"));
}

TEST(Parts, ErrorsNameShapes) {
  EXPECT_EQ(textOf([](Tensor x, Tensor) { return slice(x, 0, 0, 1); }),
            "predict: slice along the batch of [?, 4, 6]: samples do not know their neighbours");
  EXPECT_EQ(textOf([](Tensor x, Tensor) { return slice(x, 1, 3, 2); }),
            "predict: slice 3:2:1 along dimension 1 of [?, 4, 6] takes no element");
  EXPECT_EQ(textOf([](Tensor x, Tensor) { return slice(x, 3, 0, 1); }),
            "predict: slice along dimension 3 of [?, 4, 6], which has 3");
  EXPECT_EQ(textOf([](Tensor x, Tensor) { return select(x, 1, 4); }),
            "predict: select of 4 along dimension 1 of [?, 4, 6]");
  EXPECT_EQ(
      textOf([](Tensor x, Tensor ids) { return concat({x, ids}, 1); }),
      "predict: concat of [?, 4, 6] f32 and [?, 5] i32: they may differ in dimension 1 alone, which is not "
      "the batch");
  EXPECT_EQ(textOf([](Tensor x, Tensor) { return gather(x, x, 1); }),
            "predict: gather takes i32 or i64 indices, got f32");
  EXPECT_EQ(
      textOf([](Tensor x, Tensor ids) { return gather(x, ids, 1); }),
      "predict: gather along dimension 1 of [?, 4, 6] by [?, 5]: the batch stays first, so indices with a "
      "batch take dimension 0");
  EXPECT_EQ(textOf([](Tensor x, Tensor) { return constant(x, {2}, {1}); }),
            "predict: constant of [2] with 1 numbers");
}

TEST(Tokens, AnEmbeddingIsARowForEach) {
  Embedding embedding(100, 8);
  std::string text = textOf([&](Tensor, Tensor ids) { return embedding(ids); });
  EXPECT_TRUE(has(text, "gpuc.variable @weight : tensor<100x8xf32> init normal(mean = 0.0, std = 1.0)"));
  EXPECT_TRUE(has(text, "(tensor<100x8xf32>, tensor<?x5xi32>) -> tensor<?x5x8xf32>"));
  EXPECT_EQ(textOf([&](Tensor x, Tensor) { return embedding(x); }),
            "predict: Embedding(100, 8) takes i32 or i64 tokens, got f32");
}

TEST(Tokens, PlacesAreWaves) {
  // At place 0 sin 0 and cos 0 alternate; sin 1 = 0.841…, and 1 / 10000^(2/6) = 0.0464… with sine 0.0463…
  std::string text = textOf([](Tensor x, Tensor) { return PositionalEncoding(0.1)(x); });
  EXPECT_TRUE(has(text, "[[0.000000e+00, 1.000000e+00, 0.000000e+00, 1.000000e+00"));
  EXPECT_TRUE(has(text, "0.841470"));
  EXPECT_TRUE(has(text, "0.0463992"));
  EXPECT_TRUE(has(text, "gpuc.dropout"));
  EXPECT_FALSE(has(textOf([](Tensor x, Tensor) { return PositionalEncoding(0)(x); }), "gpuc.dropout"));
  EXPECT_EQ(
      textOf([](Tensor x, Tensor) { return PositionalEncoding()(slice(x, 2, 0, 3)); }),
      "predict: PositionalEncoding(0.1) takes [batch, length, width] with an even width, got [?, 4, 3]");
}

TEST(Entries, PredictMayHaveSeveralOutputs) {
  ModelBuilder model("test");
  model.predictSeveral({{"x", {B, 4}}}, {"y", "twice"},
                       [](const std::vector<Tensor> &x) { return std::vector<Tensor>{x[0], x[0] * 2}; });
  model.loss({{"t", {B, 4}}}, [](Tensor y, Tensor t) { return mse(y, t); });
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  EXPECT_TRUE(
      has(finished->text(), R"((tensor<?x4xf32> {gpuc.name = "y"}, tensor<?x4xf32> {gpuc.name = "twice"}))"));

  ModelBuilder wrong("test");
  wrong.predictSeveral({{"x", {B, 4}}}, {"y", "twice"}, [](const std::vector<Tensor> &x) { return x; });
  EXPECT_EQ(wrong.finish().message(), "predict: predict returns 1 tensors for 2 names");
}

TEST(Entries, ALossMayGoItsOwnWay) {
  Linear fc(4, 3);
  ModelBuilder model("test");
  model.predict({{"x", {B, 4}}}, "y", [&](Tensor x) { return softmax(fc(x)); });
  model.loss({{"x", {B, 4}}}, {{"labels", {B}, DataType::i32, 3}},
             [&](Tensor x, Tensor labels) { return crossEntropy(fc(x), labels); });
  model.recipe({});
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  std::string loss = finished->text();
  loss = loss.substr(loss.find("func.func @loss"));
  EXPECT_FALSE(has(loss, "@predict"));
  EXPECT_TRUE(has(loss, "gpuc.read @weight"));
  EXPECT_TRUE(has(loss, R"(%x: tensor<?x4xf32> {gpuc.name = "x"})"));
}

} // namespace
} // namespace gpuc::nn
