//===- batch_norm_paths_test.cpp - Mean and variance in one sweep -------------===//
//
// Channels last, and the sums over images cut in two, as gpuc-layout leaves them. On CUDA both statistics
// take one sweep over memory (passes/kernels/Moments.cpp), which must lose no more than two sweeps do: mean
// and variance in f32 against the interpreter's in f64, of channels whose means are far from zero, which are
// one number, or of which one element is far from all others.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/DeviceRun.h"
#include "test/gradients/Fixture.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace gpuc::gradients {
namespace {

constexpr int64_t images = 3, rows = 9, columns = 7, channels = 5;

constexpr const char *text = R"(
  func.func @f(%x: tensor<3x9x7x5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
    %n = gpuc.constant 189.0 : tensor<5xf32>
    %0 = gpuc.sum %x dims [1, 2] : (tensor<3x9x7x5xf32>) -> tensor<3x5xf32>
    %1 = gpuc.sum %0 dims [0] : (tensor<3x5xf32>) -> tensor<5xf32>
    %mean = gpuc.div %1, %n : tensor<5xf32>
    %2 = gpuc.broadcast %mean dims [3] : tensor<5xf32> to tensor<3x9x7x5xf32>
    %3 = gpuc.sub %x, %2 : tensor<3x9x7x5xf32>
    %4 = gpuc.mul %3, %3 : tensor<3x9x7x5xf32>
    %5 = gpuc.sum %4 dims [1, 2] : (tensor<3x9x7x5xf32>) -> tensor<3x5xf32>
    %6 = gpuc.sum %5 dims [0] : (tensor<3x5xf32>) -> tensor<5xf32>
    %variance = gpuc.div %6, %n : tensor<5xf32>
    return %mean, %variance : tensor<5xf32>, tensor<5xf32>
  })";

class BatchNormPathsTest : public DialectTest {
protected:
  void SetUp() override {
    static const Status found = findTestDevice();
    if (!found.ok())
      GTEST_SKIP() << found.message();
  }

  /// Channels: around 0; mean 1000; mean -1e6 of images that differ by their means; one number; one element
  /// far from all others, the first of its image.
  static double elementOf(std::mt19937 &random, int64_t image, int64_t pixel, int64_t channel) {
    const double drawn = std::normal_distribution<double>()(random);
    const double values[channels] = {drawn, 1000 + drawn, -1e6 + 30 * static_cast<double>(image) + drawn, 0.1,
                                     image == 1 && pixel == 0 ? 1e4 : drawn};
    return static_cast<float>(values[channel]);
  }
};

TEST_F(BatchNormPathsTest, MomentsAreAsAccurateAsOfTwoSweeps) {
  OwningOpRef<ModuleOp> module = parse(text);
  ASSERT_TRUE(module);
  func::FuncOp f = lookup(*module, "f");
  Tensor x(cast<RankedTensorType>(f.getArgumentTypes().front()));
  std::mt19937 random(1);
  for (int64_t at = 0; at < images * rows * columns * channels; ++at)
    x.elements[at].real =
        elementOf(random, at / (rows * columns * channels), at / channels % (rows * columns), at % channels);
  std::vector<RankedTensorType> types;
  for (Type type : f.getResultTypes())
    types.push_back(cast<RankedTensorType>(type));
  std::vector<Tensor> exact = interpret(*module, "f", {x});
  auto found = runOnDevice(text, {x}, types);
  ASSERT_TRUE(found.ok()) << found.message();
  for (int64_t channel = 0; channel < channels; ++channel) {
    const double mean = exact[0].elements[channel].real, variance = exact[1].elements[channel].real;
    EXPECT_NEAR((*found)[0].elements[channel].real, mean, 1e-6 * std::abs(mean) + 1e-6)
        << "channel " << channel;
    EXPECT_NEAR((*found)[1].elements[channel].real, variance, 1e-5 * variance + 1e-12)
        << "channel " << channel;
  }
}

} // namespace
} // namespace gpuc::gradients
