// Loops over time by the graph builder: what they become, and what they refuse.
#include "frontend/builder/nn.h"

#include <gtest/gtest.h>

namespace gpuc::nn {
namespace {

constexpr int64_t B = kBatch;

/// A model whose predict takes x [?, 7, 4] and h [?, 4]; the text, or the error.
template <typename Body> std::string built(Body body) {
  ModelBuilder model("test");
  model.predict({{"x", {B, 7, 4}}, {"h", {B, 4}}}, "y", body);
  Result<Model> finished = model.finish();
  return finished.ok() ? finished->text() : finished.message();
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

/// A recurrent layer with one matrix.
struct Recurrent : Layer {
  Tensor forward(const Tensor &x) override {
    Tensor w = parameter(x, "weight", {4, 4}, Initializer::ones());
    return scan({x}, {sum(x, {1})}, {w},
                [](const auto &slices, const auto &carried, const auto &captures) -> ScanValues {
                  Tensor next = tanh(slices[0] + matmul(carried[0], captures[0]));
                  return {{next}, {next}};
                })
        .outputs.at(0);
  }
};

TEST(Scan, IsALoop) {
  Recurrent layer;
  std::string text = built([&](Tensor x, Tensor) { return layer(x); });
  EXPECT_TRUE(has(text, "gpuc.scan over(")) << text;
  EXPECT_TRUE(has(text, "batch_first : (tensor<?x7x4xf32>, tensor<?x4xf32>, tensor<4x4xf32>) -> "
                        "(tensor<?x4xf32>, tensor<?x7x4xf32>)"))
      << text;
}

TEST(Scan, GoesBackAndCarriesOut) {
  std::string text = built([](Tensor x, Tensor h) {
    return scan({x}, {h}, {},
                [](const auto &slices, const auto &carried, const auto &) -> ScanValues {
                  return {{slices[0] * carried[0]}, {}};
                },
                {.reverse = true})
        .carried.at(0);
  });
  EXPECT_TRUE(has(text, "batch_first reverse : (tensor<?x7x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>"))
      << text;
}

TEST(Scan, CostsAllItsSteps) {
  ModelBuilder model("test");
  Recurrent layer;
  model.predict({{"x", {B, 7, 4}}}, "y", layer);
  Result<Model> finished = model.finish();
  ASSERT_TRUE(finished.ok()) << finished.message();
  // The first h is a sum: 28. A step: the product 2 · 4 · 4, the sum 4, tanh 4.
  EXPECT_TRUE(has(finished->summary(), std::to_string(28 + 7 * 40))) << finished->summary();
}

TEST(Scan, RefusesWhatNoStepCanHave) {
  auto step = [](auto next) {
    return [next](Tensor x, Tensor h) {
      ScanValues result =
          scan({x}, {h}, {}, [&](const auto &slices, const auto &carried, const auto &) -> ScanValues {
            return {{next(slices[0], carried[0], h)}, {}};
          });
      return result.carried.empty() ? Tensor() : result.carried[0];
    };
  };
  EXPECT_EQ(built(step([](Tensor, Tensor, Tensor outside) { return exp(outside); })),
            "predict: exp in a scan takes tensors of the step being built, got one of outside; pass it as a "
            "capture");
  EXPECT_EQ(built(step([](Tensor, Tensor carried, Tensor) { return sum(carried, {1}); })),
            "predict: scan: a step must carry on tensors of the number and shapes that it was given");

  Linear fc(4, 4);
  EXPECT_EQ(built(step([&](Tensor slice, Tensor, Tensor) { return fc(slice); })),
            "predict: parameter weight is read in a scan; read it outside and pass it as a capture");
}

TEST(Scan, RefusesInputsWithoutCommonSteps) {
  auto over = [](auto inputs) {
    return [inputs](Tensor x, Tensor h) {
      scan(inputs(x, h), {}, {},
           [](const auto &slices, const auto &, const auto &) -> ScanValues { return {{}, {slices[0]}}; });
      return h;
    };
  };
  using Tensors = std::vector<Tensor>;
  EXPECT_EQ(built(over([](Tensor x, Tensor h) { return Tensors{x, h}; })),
            "predict: scan over [?, 4]: dimension 1 must be time, with one number of steps for all inputs");
}

} // namespace
} // namespace gpuc::nn
