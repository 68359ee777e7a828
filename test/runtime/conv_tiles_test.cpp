// A filter's gradient in tiles, which are handed to a weight's update, and whose squares are added up: the
// bits of a gradient that is stored, whoever computes which tile.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/host/conv.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/conv_reference.h"
#include "test/runtime/half_operands.h"

namespace gpuc {
namespace {

ConvAxis same(int64_t input, int64_t stride = 1) { return axis(input, 3, stride, 1, 1); }

ConvShape filterGradient(ConvShape shape) {
  EXPECT_TRUE(countWindows(shape));
  shape.kind = ConvKind::filter_gradient;
  return shape;
}

/// With what ends them: by channels in one go, with splits, with rounds, of 5x5; by patches in one go, of one
/// tap either way around; in parts that are added up, by patches, one tap, rows, outputs, depthwise; one tap
/// by strides; groups, apart and side by side.
std::vector<ConvShape> shapesOfTiles() {
  std::vector<ConvShape> shapes;
  for (const ConvShape& shape :
       {makeShape(3, 330, 200, same(2), same(2)), makeShape(5, 33, 40, same(17), same(15)),
        makeShape(25, 64, 32, same(16), same(16)), makeShape(2, 40, 70, axis(6, 5), axis(6, 5)),
        makeShape(1, 1024, 600, axis(16, 1), axis(16, 1)), makeShape(1, 600, 1024, axis(16, 1), axis(16, 1)),
        makeShape(1, 64, 40, axis(40, 2, 9, 0, 0, 9), axis(700, 2, 9)),
        makeShape(3, 70, 270, axis(12, 1), axis(13, 1)), makeShape(7, 300, 70, axis(4, 1), axis(4, 1)),
        makeShape(4, 3, 70, axis(30, 7, 2, 3, 3), axis(30, 7, 2, 3, 3)),
        makeShape(5, 6, 16, axis(12, 5), axis(12, 5)), makeShape(5, 600, 600, same(9), same(9), 600),
        makeShape(3, 64, 128, axis(14, 1, 2), axis(14, 1, 2)), makeShape(6, 64, 256, same(7), same(7), 2),
        makeShape(1, 2, 500, axis(1, 1), axis(1, 1)), makeShape(6, 28, 28, same(9, 2), same(7, 2), 7),
        makeShape(5, 40, 40, same(33, 2), same(33, 2), 5), makeShape(2, 12, 12, same(7), same(7), 3),
        makeShape(3, 40, 70, axis(20, 9, 2), axis(19, 9, 2))})
    shapes.push_back(filterGradient(shape));
  return shapes;
}

/// Methods whose tiles can be handed on; there is one, at least.
std::vector<ConvMethod> methodsWithTiles(const ConvShape& shape) {
  std::vector<ConvMethod> methods = methodsOf(shape);
  std::erase_if(methods, [&](ConvMethod method) { return !convGradientTiles(shape, method); });
  EXPECT_FALSE(methods.empty());
  return methods;
}

/// What takes a test's tiles: operands are the tile, and the gradient, to which all of its elements are
/// moved.
struct Taker {
  static inline GradientTiles tiles;

  static void take(void* const* operands, int64_t begin, int64_t end) {
    const auto from = reinterpret_cast<uintptr_t>(operands[0]);
    float* to = static_cast<float*>(operands[1]);
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tile / tiles.columnTiles() * tiles.tile_rows;
      const int64_t column = tile % tiles.columnTiles() * tiles.tile_columns;
      for (int64_t r = row; r < std::min(row + tiles.tile_rows, tiles.rows); ++r)
        for (int64_t c = column; c < std::min(column + tiles.tile_columns, tiles.columns); ++c) {
          const auto place = static_cast<uintptr_t>(r * tiles.stride + c);
          to[r * tiles.columns + c] = *reinterpret_cast<const float*>(from + place * sizeof(float));
        }
    }
  }
};

ConvKernel kernelFor(const ConvShape& shape, ConvMethod method) {
  Result<ConvKernel> kernel = ConvKernel::create(shape, method, convWorkspaceBytes(shape, method));
  EXPECT_TRUE(kernel.ok()) << kernel.message();
  return *std::move(kernel);
}

void run(const ConvKernel& kernel, const ConvOperands& operands, int threads) {
  for (int phase = 0; phase < kernel.phaseCount(); ++phase)
    computeInThreads(kernel.tiles(phase), threads, static_cast<uint64_t>(threads),
                     [&](int64_t begin, int64_t end) { kernel.run(phase, operands, begin, end); });
}

std::vector<float> squaresOf(const GradientTiles& tiles, const std::vector<float>& gradient) {
  std::vector<double> sums(static_cast<size_t>(tiles.count()));
  for (int64_t row = 0; row < tiles.rows; ++row)
    for (int64_t column = 0; column < tiles.columns; ++column) {
      const double element = gradient[static_cast<size_t>(row * tiles.columns + column)];
      sums[static_cast<size_t>(tiles.number(row / tiles.tile_rows * tiles.tile_rows,
                                            column / tiles.tile_columns * tiles.tile_columns))] +=
          element * element;
    }
  return {sums.begin(), sums.end()};
}

/// The gradient that is stored, and the squares beside it.
struct Stored {
  std::vector<float> gradient, squares;
};

Stored store(const ConvShape& shape, ConvMethod method) {
  const ConvKernel kernel = kernelFor(shape, method);
  GuardedConv<float> bare(shape, 3, method), problem(shape, 3, method);
  run(kernel, bare.operands(), 1);
  EXPECT_EQ(bare.firstError(), "");
  Stored stored = {bare.result(), std::vector<float>(static_cast<size_t>(kernel.gradientTiles()->count()))};
  ConvOperands operands = problem.operands();
  operands.squares = stored.squares.data();
  run(kernel, operands, 1);
  EXPECT_EQ(problem.result(), stored.gradient);
  const std::vector<float> expected = squaresOf(*kernel.gradientTiles(), stored.gradient);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(stored.squares[i], expected[i], 1e-5 * expected[i]) << "tile " << i;
  return stored;
}

void checkHandedOn(const ConvShape& shape, ConvMethod method) {
  SCOPED_TRACE(describe(shape) + ", " + nameOf(method));
  const Stored stored = store(shape, method);
  ConvKernel kernel = kernelFor(shape, method);
  Taker::tiles = *kernel.gradientTiles();
  ASSERT_TRUE(kernel.handTo({.compute = Taker::take, .operands = 2}).ok());
  for (int threads : {1, 2, 3, 5}) {
    GuardedConv<float> problem(shape, 3, method);
    std::vector<float> squares(stored.squares.size());
    ConvOperands operands = problem.operands();
    void* const target = operands.c;
    operands.c = nullptr;
    operands.squares = squares.data();
    operands.of_update = &target;
    run(kernel, operands, threads);
    const std::vector<float> found = problem.result();
    EXPECT_EQ(std::memcmp(found.data(), stored.gradient.data(), found.size() * sizeof(float)), 0);
    EXPECT_EQ(squares, stored.squares);
  }
}

TEST(ConvTiles, HandedOnTheyHaveTheBitsOfAStoredGradient) {
  for (const ConvShape& shape : shapesOfTiles())
    for (ConvMethod method : methodsWithTiles(shape)) checkHandedOn(shape, method);
}

// By channels they are made on the stack, of rows that are filled up to whole vectors.
TEST(ConvTiles, FitTheirScratch) {
  for (int64_t height = 1; height <= 16; ++height)
    for (int64_t width = 1; height * width <= kMostChannelsTaps; ++width) {
      const ConvShape shape =
          filterGradient(makeShape(4, 1024, 1024, axis(16, height), axis(width + 4, width)));
      const std::optional<GradientTiles> tiles = convGradientTiles(shape, ConvMethod::by_channels);
      ASSERT_TRUE(tiles);
      EXPECT_LE(tiles->tile_rows * tiles->stride * 4, kChannelsFilterRows * kChannelsRowBytes)
          << describe(shape);
    }
}

TEST(ConvTiles, HandingOnAllocatesNothing) {
  for (const ConvShape& shape : shapesOfTiles())
    for (ConvMethod method : methodsWithTiles(shape)) {
      ConvKernel kernel = kernelFor(shape, method);
      Taker::tiles = *kernel.gradientTiles();
      ASSERT_TRUE(kernel.handTo({.compute = Taker::take, .operands = 2}).ok());
      GuardedConv<float> problem(shape, 5, method);
      ConvOperands operands = problem.operands();
      void* const target = operands.c;
      operands.of_update = &target;
      const AllocationCount before = allocationCount();
      for (int phase = 0; phase < kernel.phaseCount(); ++phase)
        kernel.run(phase, operands, 0, kernel.tiles(phase));
      EXPECT_EQ(allocationCount().total(), before.total());
    }
}

// Not of another convolution or type, nor where a tile would lie in two groups, nor what rows alone add up
// where it lies.
TEST(ConvTiles, OthersAreStored) {
  const ConvShape shape = filterGradient(makeShape(2, 64, 64, same(7), same(7)));
  EXPECT_TRUE(convGradientTiles(shape).has_value());
  ConvShape other = shape;
  for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient}) {
    other.kind = kind;
    EXPECT_FALSE(convGradientTiles(other).has_value());
  }
  other = shape;
  for (DataType type : {DataType::f64, DataType::f16, DataType::bf16}) {
    other.type = type;
    EXPECT_FALSE(convGradientTiles(other).has_value());
  }
  const ConvMethod by_channels = ConvMethod::by_channels, by_outputs = ConvMethod::by_outputs;
  EXPECT_FALSE(
      convGradientTiles(filterGradient(makeShape(2, 64, 140, same(7), same(7), 2)), by_channels).has_value());
  EXPECT_FALSE(
      convGradientTiles(filterGradient(makeShape(1, 1, 70, same(7), same(7))), by_outputs).has_value());
  other.type = DataType::f64;
  ConvKernel kernel = kernelFor(other, ConvMethod::by_channels);
  EXPECT_EQ(kernel.handTo({.compute = Taker::take, .operands = 2}).message(),
            "conv: of a shape whose tiles cannot be handed to a weight's update");
  ConvKernel taken = kernelFor(shape, ConvMethod::by_channels);
  EXPECT_EQ(taken.handTo({.compute = Taker::take, .operands = 99}).message(),
            "conv: with a weight's update of 99 operands, at most 32");
}

}  // namespace
}  // namespace gpuc
