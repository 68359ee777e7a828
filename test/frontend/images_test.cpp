// Convolution and pooling of models: shapes as PyTorch has them, mistakes found when the model is built.
#include "frontend/builder/Images.h"
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

/// The shape of what `body` makes of x [?, 4, 9, 8] and w [6, 4, 3, 3].
template <typename Body> Shape shapeOf(Body body) {
  Shape shape;
  ModelBuilder model("test");
  model.predict({{"x", {kBatch, 4, 9, 8}}, {"w", {6, 4, 3, 3}}}, "y", [&](Tensor x, Tensor w) {
    Tensor y = body(x, w);
    shape = y.shape();
    return y;
  });
  Result<Model> finished = model.finish();
  EXPECT_TRUE(finished.ok()) << finished.message();
  return shape;
}

template <typename Body> std::string errorOf(Body body) {
  ModelBuilder model("test");
  model.predict({{"x", {kBatch, 4, 9, 8}}, {"w", {6, 4, 3, 3}}}, "y", body);
  Result<Model> finished = model.finish();
  EXPECT_FALSE(finished.ok()) << "no error";
  return finished.ok() ? "" : finished.message();
}

TEST(BuilderImages, ConvolutionsHavePyTorchsShapes) {
  EXPECT_EQ(shapeOf([](Tensor x, Tensor w) { return conv2d(x, w); }), (Shape{kBatch, 6, 7, 6}));
  // (9 + 2 - 3) / 2 + 1 = 5, (8 + 2 - 3) / 2 + 1 = 4
  EXPECT_EQ(shapeOf([](Tensor x, Tensor w) { return conv2d(x, w, {{2, 2}, padded(1, 1)}); }),
            (Shape{kBatch, 6, 5, 4}));
  // The weight's outputs are the inputs here: (5 - 1) · 2 - 2 + 3 = 9, and 7 + 1 columns.
  EXPECT_EQ(shapeOf([](Tensor x, Tensor w) {
              Tensor y = conv2d(x, w, {{2, 2}, padded(1, 1)});
              return convTranspose2d(y, w, {{2, 2}, padded(1, 1)}, {0, 1});
            }),
            (Shape{kBatch, 4, 9, 8}));
  EXPECT_EQ(shapeOf([](Tensor x, Tensor w) {
              return conv1d(reshape(x, {kBatch, 4, 72}), reshape(w, {6, 4, 9}), 2, {4, 4});
            }),
            (Shape{kBatch, 6, 36}));
}

TEST(BuilderImages, PoolingsHavePyTorchsShapes) {
  PoolOptions halves{{2, 2}};
  EXPECT_EQ(shapeOf([&](Tensor x, Tensor) { return maxPool2d(x, {2, 2}, halves).values; }),
            (Shape{kBatch, 4, 4, 4}));
  EXPECT_EQ(shapeOf([&](Tensor x, Tensor) { return maxPool2d(x, {2, 2}, halves).indices; }),
            (Shape{kBatch, 4, 4, 4}));
  EXPECT_EQ(shapeOf([&](Tensor x, Tensor) {
              PoolOptions ceil = halves;
              ceil.padding = ceilPadding(x, {2, 2}, halves);
              return maxPool2d(x, {2, 2}, ceil).values;
            }),
            (Shape{kBatch, 4, 5, 4}));
  EXPECT_EQ(shapeOf([&](Tensor x, Tensor) { return avgPool2d(x, {9, 8}, {}); }), (Shape{kBatch, 4, 1, 1}));
}

TEST(BuilderImages, MistakesAreNamed) {
  EXPECT_EQ(
      errorOf([](Tensor x, Tensor w) { return conv2d(x, w, {.groups = 2}); }),
      "predict: conv2d: input 'tensor<?x4x9x8xf32>' and filter 'tensor<6x4x3x3xf32>' do not agree in 2 "
      "groups: the filter has 4 input channels, 4 / 2 are wanted, and its 6 outputs must be a multiple of "
      "the groups [conv_C3]");
  EXPECT_EQ(errorOf([](Tensor x, Tensor w) { return convTranspose2d(x, w); }),
            "predict: convTranspose2d of [?, 4, 9, 8] and [6, 4, 3, 3]: the weight has as many inputs as the "
            "images have channels, and outputPadding is less than the stride");
  EXPECT_EQ(errorOf([](Tensor x, Tensor w) { return conv1d(x, w); }),
            "predict: conv1d of [?, 4, 9, 8] and [6, 4, 3, 3]: both have three dimensions");
  EXPECT_EQ(errorOf([](Tensor x, Tensor) { return avgPool2d(x, {2, 2}, {.dilation = {2, 2}}); }),
            "predict: avgPool2d has no dilation");
  std::string empty = errorOf([](Tensor x, Tensor) { return maxPool2d(x, {10, 2}, {}).values; });
  EXPECT_NE(empty.find("maxPool2d: images"), std::string::npos) << empty;
}

} // namespace
} // namespace gpuc::nn
