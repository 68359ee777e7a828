// Which method the host takes for a convolution: the one that takes least by what is counted.
#include "runtime/workspace/conv_method.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "runtime/host/conv.h"
#include "test/runtime/conv_reference.h"

namespace gpuc {
namespace {

constexpr ConvKind kKinds[] = {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient};

ConvAxis same(int64_t input, int64_t kernel = 3, int64_t stride = 1) {
  return axis(input, kernel, stride, kernel / 2, kernel / 2);
}

ConvMethod methodOf(ConvShape shape, ConvKind kind) {
  EXPECT_TRUE(countWindows(shape));
  shape.kind = kind;
  return convMethod(shape);
}

/// A shape of any kind and type; most have windows.
ConvShape anyShape(std::mt19937_64& random) {
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  auto any = [&] { return axis(upTo(40), upTo(7), upTo(3), upTo(4) - 1, upTo(4) - 1, upTo(2)); };
  const int64_t groups = upTo(4);
  ConvShape shape = makeShape(upTo(40), groups * upTo(70), groups * upTo(70), any(), any(), groups);
  shape.kind = kKinds[random() % 3];
  shape.type = random() % 4 == 0 ? DataType::f64 : DataType::f32;
  return shape;
}

// Layers that took 3 to 30 times as long by another method, and those of everyday networks.
TEST(ConvMethod, TakesWhatWasMeasuredToBeQuickest) {
  const auto forward = ConvKind::forward, input = ConvKind::input_gradient,
             filter = ConvKind::filter_gradient;
  EXPECT_EQ(methodOf(makeShape(8, 512, 1, axis(16, 7, 2), axis(16, 7, 2)), input), ConvMethod::by_channels);
  EXPECT_EQ(methodOf(makeShape(64, 6, 96, same(1, 5), same(1, 5)), input), ConvMethod::by_images);
  EXPECT_EQ(methodOf(makeShape(128, 48, 3, same(28, 7, 2), same(28, 7, 2)), input), ConvMethod::by_channels);
  EXPECT_EQ(methodOf(makeShape(8, 256, 4, same(2), same(2)), filter), ConvMethod::by_channels);
  EXPECT_EQ(methodOf(makeShape(16, 80, 1, axis(112, 1, 2), axis(128, 1, 2)), forward),
            ConvMethod::subsampled);
  EXPECT_EQ(methodOf(makeShape(16, 3, 64, same(64, 7, 2), same(64, 7, 2)), filter), ConvMethod::by_outputs);
  EXPECT_EQ(methodOf(makeShape(32, 6, 16, axis(14, 5), axis(14, 5)), forward), ConvMethod::by_images);
  EXPECT_EQ(methodOf(makeShape(4, 64, 3, same(64, 9), same(64, 9)), forward), ConvMethod::by_rows);
  EXPECT_EQ(methodOf(makeShape(16, 64, 256, axis(56, 1), axis(56, 1)), forward), ConvMethod::patches);
  EXPECT_EQ(methodOf(makeShape(16, 64, 256, axis(56, 1), axis(56, 1)), filter), ConvMethod::patches);
  for (int64_t channels : {16, 24})
    EXPECT_EQ(methodOf(makeShape(16, channels, 6 * channels, axis(64, 1), axis(64, 1)), filter),
              ConvMethod::by_rows);
  EXPECT_EQ(methodOf(makeShape(32, 4, 32, axis(84, 8, 4), axis(84, 8, 4)), forward), ConvMethod::by_images);
  EXPECT_EQ(methodOf(makeShape(16, 96, 96, same(28), same(28), 96), filter), ConvMethod::depthwise);
  for (ConvKind kind : kKinds) {
    EXPECT_EQ(methodOf(makeShape(16, 128, 128, same(28), same(28)), kind), ConvMethod::winograd);
    EXPECT_EQ(methodOf(makeShape(16, 64, 128, same(28, 3, 2), same(28, 3, 2)), kind),
              ConvMethod::by_channels);
    EXPECT_EQ(methodOf(makeShape(16, 512, 512, same(2), same(2)), kind), ConvMethod::by_channels);
  }
}

// Bits of f16 and bf16 are f32's, rounded; and what follows the sums is no part of them.
TEST(ConvMethod, DependsOnTheArithmeticAlone) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    ConvShape shape = anyShape(random);
    if (!countWindows(shape)) continue;
    shape.type = DataType::f32;
    const ConvMethod method = convMethod(shape);
    for (DataType type : {DataType::f16, DataType::bf16}) {
      shape.type = type;
      EXPECT_EQ(convMethod(shape), method) << describe(shape);
    }
    shape.type = DataType::f32;
    shape.bias = shape.relu = shape.kind == ConvKind::forward, shape.mask = !shape.bias;
    EXPECT_EQ(convMethod(shape), method) << describe(shape);
  }
}

TEST(ConvMethod, OthersTakeNoLess) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    const ConvShape drawn = anyShape(random);
    ConvShape shape = drawn;
    if (!countWindows(shape)) continue;
    const ConvMethod chosen = convMethod(shape);
    EXPECT_TRUE(fitsMethod(shape, chosen)) << describe(shape);
    if (chosen == ConvMethod::depthwise) continue;
    for (ConvMethod method : methodsOf(shape))
      if (method != ConvMethod::depthwise)
        EXPECT_LE(convCost(shape, chosen), convCost(shape, method)) << describe(shape) << nameOf(method);
  }
}

// Each product is a lane of a step at most: nothing is counted that would do more than all lanes allow, and
// by channels none with padding.
TEST(ConvMethod, CountsAllProducts) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    ConvShape shape = anyShape(random);
    if (!countWindows(shape)) continue;
    for (ConvMethod method : methodsOf(shape)) {
      if (method == ConvMethod::subsampled) continue;
      const int64_t steps = convWork(shape, method).steps;
      const int64_t products =
          method == ConvMethod::winograd ? winogradProducts(shape) : channelsProducts(shape);
      EXPECT_GE(steps * vectorLanes(shape), products) << describe(shape) << nameOf(method);
    }
  }
  ConvShape whole = makeShape(12, 64, 64, axis(8, 3), axis(8, 3));  // no padding, whole vectors and blocks
  ASSERT_TRUE(countWindows(whole));
  EXPECT_EQ(convWork(whole, ConvMethod::by_channels).steps * vectorLanes(whole), channelsProducts(whole));
}

// A row of 4,096 windows is 256 vectors for each of three taps, cut into 64 blocks.
TEST(ConvMethod, CountsLongRowsOnce) {
  ConvShape shape = makeShape(1, 1, 1, axis(1, 1), axis(4098, 3));
  ASSERT_TRUE(countWindows(shape));
  EXPECT_EQ(convWork(shape, ConvMethod::patches).vectors, 3 * (256 + 63));
}

// A hostile plan's numbers: counted by nobody, since they would not fit 64 bits.
TEST(ConvMethod, NumbersBeyondAllMemory) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (ConvKind kind : kKinds)
    for (int64_t batch : {int64_t{1}, kMost})
      for (int64_t channels : {int64_t{1}, kMost})
        for (int64_t extent : {int64_t{3}, int64_t{1} << 20, kMost})
          for (int64_t kernel : {int64_t{1}, int64_t{3}, int64_t{1} << 16}) {
            ConvShape shape =
                makeShape(batch, channels, channels, axis(extent, kernel), axis(extent, kernel));
            if (!countWindows(shape)) continue;
            shape.kind = kind;
            EXPECT_TRUE(fitsMethod(shape, convMethod(shape))) << describe(shape);
          }
  std::mt19937_64 random(6);
  // Of any magnitude below so many bits.
  auto upTo = [&](uint64_t bits) { return 1 + static_cast<int64_t>(random() >> (64 - random() % bits - 1)); };
  for (int i = 0; i < 5000; ++i) {
    auto any = [&] { return axis(upTo(31), upTo(12), upTo(20), upTo(5), upTo(5), upTo(12)); };
    const int64_t groups = upTo(8);
    ConvShape shape = makeShape(upTo(31), groups * upTo(16), groups * upTo(16), any(), any(), groups);
    shape.kind = kKinds[random() % 3];
    if (!countWindows(shape) || !isCountable(shape)) continue;
    for (ConvMethod method : methodsOf(shape)) EXPECT_GE(convCost(shape, method), 0) << describe(shape);
  }
  ConvShape empty = makeShape(0, 4, 4, same(8), same(8));
  ASSERT_TRUE(countWindows(empty));
  EXPECT_EQ(convMethod(empty), ConvMethod::patches);
}

}  // namespace
}  // namespace gpuc
