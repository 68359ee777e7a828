// Norms, attention, losses and resizing as the graph builder makes them: ops, names, shapes, and one line for
// each mistake.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

constexpr int64_t B = kBatch;

/// The text of a model whose predict takes x, or the error that it has.
template <typename Body> std::string made(Shape shape, Body body) {
  ModelBuilder model("test");
  model.predict({{"x", std::move(shape)}}, "y", body);
  Result<Model> finished = model.finish();
  return finished.ok() ? finished->text() : finished.message();
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }
#define EXPECT_HAS(text, part) EXPECT_TRUE(has(text, part)) << (part) << "\nin\n" << (text)

TEST(NetworkOps, LayerNormHasPyTorchsParameters) {
  LayerNorm norm({4, 6});
  std::string text = made({B, 3, 4, 6}, [&](Tensor x) { return norm(x); });
  EXPECT_HAS(text, "gpuc.variable @weight : tensor<4x6xf32> init ones");
  EXPECT_HAS(text, "gpuc.variable @bias : tensor<4x6xf32> init zeros");
  EXPECT_HAS(text, "gpuc.layer_norm %x dim 2 weight %");
  EXPECT_HAS(text, "-> (tensor<?x3x4x6xf32>, tensor<?x3xf32>, tensor<?x3xf32>)");
  LayerNorm plain({6}, 1e-3, /*affine=*/false);
  text = made({B, 6}, [&](Tensor x) { return plain(x); });
  EXPECT_HAS(text, "gpuc.layer_norm %x dim 1 {eps = 1.000000e-03 : f64} :");
  EXPECT_FALSE(has(text, "gpuc.variable"));
  LayerNorm biasless({6}, 1e-5, /*affine=*/true, /*bias=*/false);
  EXPECT_FALSE(has(made({B, 6}, [&](Tensor x) { return biasless(x); }), "@bias"));
}

TEST(NetworkOps, RmsAndGroupNorm) {
  RMSNorm rms({6});
  EXPECT_HAS(made({B, 3, 6}, [&](Tensor x) { return rms(x); }), "gpuc.rms_norm %x dim 2 weight %");
  GroupNorm group(2, 4);
  std::string text = made({B, 4, 5, 5}, [&](Tensor x) { return group(x); });
  EXPECT_HAS(text, "tensor<?x4x5x5xf32> to tensor<?x2x50xf32>");
  EXPECT_HAS(text, "gpuc.layer_norm %");
  EXPECT_HAS(text, "dims [1] : tensor<4xf32> to tensor<?x4x5x5xf32>");
}

TEST(NetworkOps, BatchNormTracksStatistics) {
  struct Net : Layer {
    BatchNorm &bn = add("bn", BatchNorm(3));
    Tensor forward(const Tensor &x) override { return relu(bn(x)); }
  };
  Net net;
  ModelBuilder model("test");
  model.predict({{"x", {B, 3, 8, 8}}}, "y", net);
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  std::string text = finished->text();
  EXPECT_HAS(text, "gpuc.variable @bn.weight : tensor<3xf32> init ones");
  EXPECT_HAS(text, "gpuc.variable @bn.bias : tensor<3xf32> init zeros");
  EXPECT_HAS(text, "gpuc.variable @bn.running_mean kind statistic : tensor<3xf32> init zeros");
  EXPECT_HAS(text, "gpuc.variable @bn.running_var kind statistic : tensor<3xf32> init ones");
  EXPECT_HAS(text, "gpuc.variable @bn.num_batches_tracked kind statistic : tensor<i64> init zeros");
  EXPECT_HAS(text, "gpuc.assign @bn.running_mean, %");
  EXPECT_HAS(text, "gpuc.assign @bn.running_var, %");
  EXPECT_HAS(text, "gpuc.assign @bn.num_batches_tracked, %");
  EXPECT_HAS(finished->summary(), "BatchNorm(3)");
  EXPECT_HAS(finished->summary(), "6 parameters"); // statistics are none
}

TEST(NetworkOps, BatchNormPassesItsNumbersOn) {
  BatchNorm norm(3, /*eps=*/0.5, /*momentum=*/0.25);
  std::string text = made({B, 3, 4}, [&](Tensor x) { return norm(x); });
  EXPECT_HAS(text, "eps = 5.000000e-01 : f64");
  EXPECT_HAS(text, "momentum = 2.500000e-01 : f64");
}

TEST(NetworkOps, Attention) {
  std::string text = made({B, 8, 16, 4}, [](Tensor x) {
    return attention(x, x, x, {.mask = {}, .scale = 0.5, .causal = true, .dropout = 0.1});
  });
  EXPECT_HAS(text, "gpuc.attention %x, %x, %x scale 5.000000e-01 causal dropout 1.000000e-01 id 0 :");
  // Dropouts have ids of their own.
  EXPECT_HAS(made({B, 8, 16, 4}, [](Tensor x) { return attention(dropout(x, 0.5), x, x, {.dropout = 0.1}); }),
             "id 1 :");
  EXPECT_HAS(
      made({B, 8, 16, 4}, [](Tensor x) { return attention(x, x, x, {.mask = sum(x, {0, 1, 3}) - 1.0}); }),
      "mask %");
}

TEST(NetworkOps, Losses) {
  auto lossText = [](Input target, auto body) {
    ModelBuilder model("test");
    model.predict({{"x", {B, 6, 5}}}, "y", [](Tensor x) { return x; });
    model.loss({std::move(target)}, body);
    Result<Model> finished = model.finish();
    return finished.ok() ? finished->text() : finished.message();
  };
  Input labels{"labels", {B, 6}, DataType::i64, 5}, target{"target", {B, 6, 5}};
  // Rows may be tokens, and classes have weights.
  EXPECT_HAS(lossText(labels,
                      [](Tensor y, Tensor t) {
                        return crossEntropy(y, t,
                                            {.smoothing = 0, .ignoreIndex = 0, .weight = sum(y, {0, 1})});
                      }),
             "gpuc.cross_entropy %predict, %labels weight %");
  // The logits of a linear layer need not be there; its bias may be missing.
  auto weight = [](Tensor y) { return constant(y, {7, 5}, std::vector<double>(35)); };
  EXPECT_HAS(lossText(labels,
                      [&](Tensor y, Tensor t) {
                        return linearCrossEntropy(y, weight(y), {}, t, {.smoothing = 0.1, .ignoreIndex = 0});
                      }),
             "labels %labels {ignore_index = 0 : i64, smoothing = 1.000000e-01 : f64} : (tensor<?x6x5xf32>, "
             "tensor<7x5xf32>, tensor<?x6xi64>)");
  EXPECT_HAS(lossText(labels,
                      [&](Tensor y, Tensor t) {
                        Tensor b = constant(y, {7}, std::vector<double>(7));
                        return linearCrossEntropy(y, weight(y), b, t, {.weight = b});
                      }),
             "class_weight %");
  EXPECT_HAS(lossText(labels, [&](Tensor y, Tensor t) { return linearAccuracy(y, weight(y), {}, t, 0); }),
             "gpuc.linear_accuracy %predict, %");
  EXPECT_EQ(
      lossText(labels,
               [&](Tensor y, Tensor t) {
                 return linearCrossEntropy(y, weight(y), {}, t, {.weight = sum(y, {0, 1})});
               }),
      "loss: linearCrossEntropy takes a weight [classes] of the type of the logits, [?, 6, 7] f32, got [5] "
      "f32");
  EXPECT_HAS(lossText(labels, [](Tensor y, Tensor t) { return nll(logSoftmax(y), t); }), "gpuc.nll %");
  EXPECT_HAS(lossText(target, [](Tensor y, Tensor t) { return l1(y, t); }), "gpuc.l1 %predict, %target");
  EXPECT_HAS(lossText(target, [](Tensor y, Tensor t) { return huber(y, t, 2); }), "delta = 2.000000e+00");
  EXPECT_HAS(lossText(target, [](Tensor y, Tensor t) { return smoothL1(y, t, 0.5); }), "gpuc.div %");
  EXPECT_HAS(lossText(target, [](Tensor y, Tensor t) { return bceWithLogits(y, t, sum(y, {0, 1})); }),
             "gpuc.bce_with_logits %predict, %target positive_weight %");

  EXPECT_EQ(
      lossText(labels,
               [](Tensor y, Tensor t) {
                 return crossEntropy(y, t, {.smoothing = 0, .ignoreIndex = 0, .weight = sum(y, {0, 2})});
               }),
      "loss: crossEntropy takes a weight [classes] of the type of the logits, [?, 6, 5] f32, got [6] f32");
  EXPECT_EQ(lossText(labels, [](Tensor y, Tensor t) { return l1(y, t); }),
            "loss: l1 takes a prediction and a target of one floating-point type, got f32 and i64");
  EXPECT_EQ(lossText(target, [](Tensor y, Tensor t) { return huber(y, t, 0); }),
            "loss: huber with delta 0; it is greater than 0");
  EXPECT_HAS(lossText(target, [](Tensor y, Tensor t) { return bceWithLogits(y, t, sum(y, {0, 2})); }),
             "cannot be broadcast to the prediction 'tensor<?x6x5xf32>' [bce_with_logits_C1]");
}

TEST(NetworkOps, MistakesAreOneLine) {
  EXPECT_EQ(made({B, 4}, [](Tensor x) { return layerNorm(x, 0); }),
            "predict: layerNorm of [?, 4] over the batch: samples do not know their neighbours");
  EXPECT_EQ(made({B, 4}, [](Tensor x) { return rmsNorm(x, 2); }),
            "predict: rmsNorm along dimension 2 of [?, 4], which has 2");
  LayerNorm norm({5});
  EXPECT_EQ(made({B, 4}, [&](Tensor x) { return norm(x); }),
            "predict: layerNorm of [?, 4] takes weight, bias and statistics [4], got [5]");
  EXPECT_EQ(made({B, 4}, [](Tensor x) { return groupNorm(x, 3); }),
            "predict: groupNorm of [?, 4] in 3 groups: they divide dimension 1, the channels");
  BatchNorm batch(3);
  EXPECT_EQ(made({B, 4}, [&](Tensor x) { return batch(x); }),
            "predict: batchNorm of [?, 4] takes weight, bias and statistics [4], got [3]");
  EXPECT_EQ(
      made({B, 2, 4, 5}, [](Tensor x) { return resize(x, {8}); }),
      "predict: resize of [?, 2, 4, 5] to [8]: an extent of at least 1 for each dimension from the third on");
  EXPECT_EQ(made({B, 2, 4}, [](Tensor x) { return resize(x, {8}, Interpolation::nearest, true); }),
            "predict: resize aligns corners with linear interpolation alone");
}

TEST(NetworkOps, AttentionRefusesOtherShapes) {
  const std::string shapes = "predict: attention takes query [batch, heads, queries, d], key [batch, groups, "
                             "keys, d] and value [batch, groups, keys, e], got ";
  const std::string x = "[?, 3, 4, 5]";
  static constexpr auto deep = [](const Tensor &tensor) { return reshape(tensor, {B, 3, 4, 5, 1}); };
  auto of = [](Tensor (*body)(Tensor)) { return made({B, 3, 4, 5}, body); };
  EXPECT_EQ(of([](Tensor x) { return attention(deep(x), x, x); }),
            shapes + "[?, 3, 4, 5, 1], " + x + " and " + x);
  EXPECT_EQ(of([](Tensor x) { return attention(x, deep(x), x); }), shapes + x + ", [?, 3, 4, 5, 1] and " + x);
  EXPECT_EQ(of([](Tensor x) { return attention(x, x, deep(x)); }),
            shapes + x + ", " + x + " and [?, 3, 4, 5, 1]");
  EXPECT_EQ(of([](Tensor x) {
              Tensor one = reshape(sum(x, {0}), {1, 3, 4, 5});
              return attention(x, one, one);
            }),
            shapes + x + ", [1, 3, 4, 5] and [1, 3, 4, 5]");
  EXPECT_EQ(of([](Tensor x) { return attention(x, slice(x, 3, 0, 2), x); }),
            shapes + x + ", [?, 3, 4, 2] and " + x);
  EXPECT_EQ(of([](Tensor x) { return attention(x, x, slice(x, 2, 0, 2)); }),
            shapes + x + ", " + x + " and [?, 3, 2, 5]");
  EXPECT_EQ(of([](Tensor x) {
              Tensor two = slice(x, 1, 0, 2);
              return attention(x, two, two);
            }),
            shapes + x + ", [?, 2, 4, 5] and [?, 2, 4, 5]");
}

TEST(NetworkOps, AttentionRefusesOtherTypesMasksAndDropout) {
  auto of = [](Tensor (*body)(Tensor)) { return made({B, 2, 4, 5}, body); };
  const std::string types = "predict: attention takes query, key and value of one floating-point type, got ";
  EXPECT_EQ(of([](Tensor x) {
              Tensor i = x.to(DataType::i32);
              return attention(i, i, i);
            }),
            types + "i32, i32 and i32");
  EXPECT_EQ(of([](Tensor x) { return attention(x, x.to(DataType::f64), x); }), types + "f32, f64 and f32");
  EXPECT_EQ(of([](Tensor x) { return attention(x, x, x.to(DataType::f64)); }), types + "f32, f32 and f64");

  const std::string mask = "predict: attention takes a mask of i1 or f32 that repeats to [?, 2, 4, 4], got ";
  EXPECT_EQ(of([](Tensor x) { return attention(x, x, x, {.mask = sum(x, {0, 1, 2})}); }), mask + "[5] f32");
  EXPECT_EQ(
      of([](Tensor x) { return attention(x, x, x, {.mask = reshape(sum(x, {0, 1, 3}), {1, 1, 1, 1, 4})}); }),
      mask + "[1, 1, 1, 1, 4] f32");
  EXPECT_EQ(of([](Tensor x) { return attention(x, x, x, {.mask = sum(x, {0, 1, 3}).to(DataType::i32)}); }),
            mask + "[4] i32");

  EXPECT_EQ(of([](Tensor x) { return attention(x, x, x, {.dropout = 1}); }),
            "predict: attention with dropout 1; it lies in [0, 1)");
  EXPECT_EQ(of([](Tensor x) { return attention(x, x, x, {.dropout = -0.5}); }),
            "predict: attention with dropout -0.5; it lies in [0, 1)");
}

TEST(NetworkOps, UpsamplesByFactorOrToASize) {
  auto up = [](UpsampleOptions options) { return [options](Tensor x) { return Upsample(options)(x); }; };
  const Shape image = {B, 2, 4, 5};
  EXPECT_HAS(made(image, up({.scaleFactor = {2}})), "to tensor<?x2x8x10xf32>");
  EXPECT_HAS(made(image, up({.scaleFactor = {0.5, 3}})), "to tensor<?x2x2x15xf32>");
  EXPECT_HAS(made(image, up({.size = {12}})), "-> tensor<?x2x12x12xf32>");
  EXPECT_EQ(made(image, up({.scaleFactor = {1.5}})),
            "predict: Upsample(scale_factor=1.5, nearest) makes 7.5 "
            "pixels of 5; give a size that is a whole number up to 10^9");
  EXPECT_EQ(made(image, up({.size = {8, 0}, .mode = Interpolation::linear})),
            "predict: Upsample(size=(8, 0), linear) makes 0 pixels of 5; give a size that is a whole number "
            "up to 10^9");
  const std::string cure =
      "give size or scale_factor, one number or one for each dimension from the third on";
  EXPECT_EQ(made(image, up({})), "predict: Upsample(scale_factor=(), nearest) of [?, 2, 4, 5]: " + cure);
  EXPECT_EQ(made(image, up({.size = {8, 8, 8}})),
            "predict: Upsample(size=(8, 8, 8), nearest) of [?, 2, 4, 5]: " + cure);
  EXPECT_EQ(made(image, up({.size = {8}, .scaleFactor = {2}})),
            "predict: Upsample(size=8, nearest) of [?, 2, 4, 5]: " + cure);
  EXPECT_EQ(made(image, up({.size = {8}, .alignCorners = true})),
            "predict: resize aligns corners with linear interpolation alone");
}

/// Whole factors repeat; nothing is looked up.
TEST(NetworkOps, ResizesByWholeFactorsWithoutIndices) {
  std::string text = made({B, 2, 4, 5}, [](Tensor x) { return resize(x, {8, 15}); });
  EXPECT_FALSE(has(text, "gpuc.gather")) << text;
  EXPECT_HAS(text, "to tensor<?x2x8x15xf32>");
}

/// A statistic is assigned once in a step.
TEST(NetworkOps, ABatchNormIsCalledOnce) {
  BatchNorm norm(4);
  EXPECT_HAS(made({B, 4}, [&](Tensor x) { return norm(norm(x)); }), "is assigned twice [assign_C3]");
}

} // namespace
} // namespace gpuc::nn
