// Layers of convolution and pooling: PyTorch's names, shapes and first values, and errors.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

constexpr int64_t B = kBatch;

/// The text of a model whose predict takes x [?, 4, 7, 9], or its error.
template <typename LayerType> std::string textOf(LayerType layer, Shape shape = {B, 4, 7, 9}) {
  ModelBuilder model("test");
  model.predict({{"x", std::move(shape)}}, "y", layer);
  Result<Model> finished = model.finish();
  return finished.ok() ? finished->text() : finished.message();
}

testing::AssertionResult has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos ? testing::AssertionSuccess()
                                              : testing::AssertionFailure() << part << "\nin\n"
                                                                            << text;
}

TEST(Convolution, Conv2dHasPyTorchsParameters) {
  // fan in 4 / 2 · 3 · 3 = 18: bias within 1 / √18 = 0.2357…
  std::string text = textOf(Conv2d(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2}));
  EXPECT_TRUE(has(text, "gpuc.variable @weight : tensor<6x2x3x3xf32> init kaiming_uniform(fan_in = 18)"));
  EXPECT_TRUE(has(text, "gpuc.variable @bias : tensor<6xf32> init uniform(bound = 0.2357"));
  EXPECT_TRUE(has(text, "strides [2, 2] padding [1, 1, 1, 1] groups 2"));
  EXPECT_TRUE(has(text, "-> tensor<?x6x4x5xf32>"));
  EXPECT_FALSE(has(textOf(Conv2d(4, 6, 3, {.bias = false})), "@bias"));
  EXPECT_TRUE(has(textOf(Conv2d(4, 6, 3, {.weight = Initializer::normal(0, 0.5)})),
                  "init normal(mean = 0.0, std = 0.5)"));
}

TEST(Convolution, Conv1dGoesAlongASequence) {
  std::string text = textOf(Conv1d(4, 6, 3, {.padding = 1, .dilation = 2}), {B, 4, 10});
  EXPECT_TRUE(has(text, "gpuc.variable @weight : tensor<6x4x3xf32> init kaiming_uniform(fan_in = 12)"));
  EXPECT_TRUE(has(text, "to tensor<?x6x8xf32>")); // 10 + 2 - 2 · 2
}

TEST(Convolution, ConvTranspose2dDoubles) {
  // Fan in as PyTorch counts it, by the weight's second extent: 6 · 2 · 2 = 24, 1 / √24 = 0.2041…
  std::string text = textOf(ConvTranspose2d(4, 6, 2, {.stride = 2}));
  EXPECT_TRUE(has(text, "gpuc.variable @weight : tensor<4x6x2x2xf32> init kaiming_uniform(fan_in = 24)"));
  EXPECT_TRUE(has(text, "gpuc.variable @bias : tensor<6xf32> init uniform(bound = 0.2041"));
  EXPECT_TRUE(has(text, "-> tensor<?x6x14x18xf32>"));
}

TEST(Pooling, WindowsLieSideBySideUnlessToldOtherwise) {
  EXPECT_TRUE(has(textOf(MaxPool2d(2)), "window [2, 2] strides [2, 2]"));
  EXPECT_TRUE(has(textOf(MaxPool2d(2)), "tensor<?x4x3x4xf32>"));
  EXPECT_TRUE(has(textOf(MaxPool2d(2, {.ceilMode = true})), "tensor<?x4x4x5xf32>"));
  EXPECT_TRUE(has(textOf(MaxPool2d(3, {.stride = 2, .padding = 1})), "tensor<?x4x4x5xf32>"));
  EXPECT_TRUE(has(textOf(AvgPool2d(2)), "gpuc.avg_pool2d"));
  EXPECT_TRUE(has(textOf(AvgPool2d(2, {.ceilMode = true})), "exclude_padding"));
}

TEST(Pooling, AdaptiveWindowsCutTheImage) {
  EXPECT_TRUE(has(textOf(AdaptiveAvgPool2d(7, 3)), "window [1, 3] strides [1, 3]"));
  EXPECT_TRUE(has(textOf(AdaptiveAvgPool2d(1)), "gpuc.mean"));
  EXPECT_TRUE(has(textOf(AdaptiveAvgPool2d(1)), "tensor<?x4x1x1xf32>"));
}

TEST(ConvolutionErrors, NameTheLayer) {
  EXPECT_EQ(textOf(Conv2d(4, 6, 3, {.groups = 4})),
            "predict: Conv2d(4, 6, 3, groups=4) needs channels that its groups divide");
  EXPECT_EQ(textOf(Conv2d(4, 0, 3)), "predict: Conv2d(4, 0, 3) needs channels and a kernel of at least 1");
  EXPECT_TRUE(has(textOf(Conv2d(3, 6, 3)), "predict: conv2d: "));
  EXPECT_TRUE(has(textOf(MaxPool2d(8)), "predict: "));
  EXPECT_EQ(textOf(AvgPool2d(3, {.padding = 1, .ceilMode = true})),
            "predict: AvgPool2d(3, padding=1, ceil_mode=true): ceil_mode with padding needs "
            "count_include_pad=false");
  EXPECT_EQ(textOf(AdaptiveAvgPool2d(2)),
            "predict: AdaptiveAvgPool2d(2, 2) takes [?, channels, n · 2, n · 2], got [?, 4, 7, 9]");
}

} // namespace
} // namespace gpuc::nn
