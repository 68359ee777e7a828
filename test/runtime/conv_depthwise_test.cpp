// The host's depthwise convolutions: values against plain loops in f64, bits, bounds of memory, allocations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/host/conv.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/conv_reference.h"
#include "test/runtime/half_operands.h"

namespace gpuc {
namespace {

constexpr ConvKind kKinds[] = {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient};

template <typename T>
void run(const ConvShape& shape, GuardedConv<T>& problem, int threads = 1, uint64_t seed = 0) {
  Result<ConvKernel> kernel = ConvKernel::create(shape, convWorkspaceBytes(shape));
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  const ConvOperands operands = problem.operands();
  for (int phase = 0; phase < kernel->phaseCount(); ++phase)
    computeInThreads(kernel->tiles(phase), threads, seed,
                     [&](int64_t begin, int64_t end) { kernel->run(phase, operands, begin, end); });
}

template <typename T>
void checkShape(ConvShape shape, DataType type, uint64_t seed) {
  shape.type = type;
  SCOPED_TRACE(describe(shape));
  GuardedConv<T> problem(shape, seed);
  run(shape, problem);
  EXPECT_EQ(problem.firstError(), "");
}

/// All three convolutions in both types; of an input's gradient with several outputs for each channel there
/// is another method.
void checkAll(ConvShape shape, uint64_t seed) {
  ASSERT_TRUE(countWindows(shape));
  for (ConvKind kind : kKinds) {
    shape.kind = kind;
    const bool others = kind == ConvKind::input_gradient && shape.groupOutputs() > 1;
    EXPECT_EQ(convMethod(shape) == ConvMethod::depthwise, !others) << describe(shape);
    checkShape<float>(shape, DataType::f32, seed);
    checkShape<double>(shape, DataType::f64, seed);
  }
}

ConvShape depthwise(int64_t batch, int64_t channels, ConvAxis height, ConvAxis width, int64_t outputs = 1) {
  return makeShape(batch, channels, channels * outputs, height, width, channels);
}

// Rows of less than a vector, of one and of several, with each number of lanes left over.
TEST(ConvDepthwise, Widths) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t stride : {1, 2})
      for (int64_t width : {1, 2, 3, 7, 8, 9, 14, 15, 16, 17, 18, 28, 31, 32, 33, 34, 47, 56, 67})
        checkAll(depthwise(1, 3, axis(4, kernel, stride, kernel / 2, kernel / 2),
                           axis(width, kernel, stride, kernel / 2, kernel / 2)),
                 static_cast<uint64_t>(width));
}

// Rows of half a vector and less, which adjoin in one: whole planes and a part of the last vector, padding on
// either side, pairs of planes and one left over.
TEST(ConvDepthwise, RowsThatAdjoin) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t low = 0; low < kernel; ++low)
      for (int64_t extent : {4, 5, 8})
        checkAll(depthwise(2, 5, axis(extent + 3, kernel, 1, kernel - 1 - low, low),
                           axis(extent, kernel, 1, low, kernel - 1 - low)),
                 static_cast<uint64_t>(10 * low + extent));
  checkAll(depthwise(2, 3, axis(6, 3, 1, 0, 0), axis(4, 3, 1, 1, 1)), 91);
  checkAll(depthwise(2, 3, axis(6, 3, 1, 4, 4), axis(4, 3, 1, 1, 1)), 92);
}

// Planes that are one vector each, four at once and some left over, their padding on either side and on both.
TEST(ConvDepthwise, PlanesOfOneVector) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t low = 0; low < kernel; ++low)
      for (int64_t extent : {3, 4})
        checkAll(depthwise(2, 10, axis(extent, kernel, 1, kernel - 1 - low, low),
                           axis(extent, kernel, 1, low, kernel - 1 - low)),
                 static_cast<uint64_t>(10 * low + extent));
  checkAll(depthwise(2, 9, axis(3, 3, 1, 1, 2), axis(4, 3, 1, 1, 1)), 93);
}

// By strides of two, rows of half a vector and less, of which two are one vector, and such as are a little
// longer: odd and even numbers of rows, padding on either side and on both.
TEST(ConvDepthwise, PairsOfRows) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t low = 0; low < kernel; ++low)
      for (int64_t extent : {4, 6, 10, 12, 14})
        checkAll(depthwise(2, 5, axis(extent + 3, kernel, 2, kernel - 1 - low, low),
                           axis(extent, kernel, 2, low, kernel - 1)),
                 static_cast<uint64_t>(10 * low + extent));
}

// A filter's gradient of which a part has more images than a plane meets at once.
TEST(ConvDepthwise, SeveralImagesOfAPart) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t stride : {1, 2})
      for (int64_t extent : {4, 7, 14}) {
        const ConvAxis side = axis(extent, kernel, stride, kernel / 2, kernel / 2);
        ConvShape shape = depthwise(151, 3, side, side);
        ASSERT_TRUE(countWindows(shape));
        shape.kind = ConvKind::filter_gradient;
        EXPECT_GT(shape.batch / cutDepthwise(shape).parts, 3);
        checkShape<float>(shape, DataType::f32, 17);
        checkShape<double>(shape, DataType::f64, 17);
      }
}

// Rows of two vectors and of more, padded by one, that are met along pairs of rows: odd and even numbers of
// rows, a last vector of one lane, of some and of all; rows missing above, below and on both sides; such as
// are padded otherwise.
TEST(ConvDepthwise, AlongRows) {
  for (int64_t columns : {17, 20, 31, 32, 33, 47, 48, 49, 64}) {
    const auto seed = static_cast<uint64_t>(columns);
    const ConvAxis row = axis(columns, 3, 1, 1, 1);
    for (int64_t low : {0, 1, 2})
      for (int64_t high : {0, 1, 2})
        for (int64_t height : {1, 2, 3, 4, 7})
          if (height + low + high >= 3) checkAll(depthwise(2, 3, axis(height, 3, 1, low, high), row), seed);
    const ConvAxis five = axis(5, 3, 1, 1, 1);
    checkAll(depthwise(2, 3, five, axis(columns, 3, 1, 0, 2)), seed);
    checkAll(depthwise(2, 3, five, axis(columns, 3, 1, 2, 0)), seed);
    checkAll(depthwise(2, 3, five, row, 2), seed);
  }
}

// Large filters on such rows, padded by half of the filter: some rows of the filter at a time, of which y
// lacks some; rows that meet padding alone.
TEST(ConvDepthwise, LargeFiltersAlongRows) {
  for (int64_t kernel : {5, 7})
    for (int64_t columns : {17, 28, 32, 33, 47, 48, 56}) {
      const auto seed = static_cast<uint64_t>(columns);
      const ConvAxis row = axis(columns, kernel, 1, kernel / 2, kernel / 2);
      for (int64_t low : {int64_t{0}, int64_t{1}, kernel / 2, kernel})
        for (int64_t high : {int64_t{0}, kernel / 2, kernel + 1})
          for (int64_t height : {1, 2, 3, 4, 6, 9})
            if (height + low + high >= kernel)
              checkAll(depthwise(1, 2, axis(height, kernel, 1, low, high), row), seed);
      checkAll(depthwise(2, 2, row, row, 2), seed);
    }
}

// 5x5 by strides of two down whole planes whose windows are one vector or two: even and odd numbers of rows
// and columns, one row alone, pairs of planes and one left over; such as are padded otherwise.
TEST(ConvDepthwise, LargeFiltersByStrides) {
  for (int64_t columns : {17, 18, 28, 31, 32, 33, 34, 47, 56, 63, 64, 65})
    for (int64_t height : {1, 2, 3, 4, 5, 8, 9})
      checkAll(depthwise(2, 3, axis(height, 5, 2, 2, 2), axis(columns, 5, 2, 2, 2)),
               static_cast<uint64_t>(columns * height));
  const ConvAxis square = axis(28, 5, 2, 2, 2);
  for (const ConvAxis& other : {axis(28, 5, 2, 1, 2), axis(28, 5, 2, 2, 1), axis(28, 5, 2, 3, 1),
                                axis(28, 5, 2, 2, 3), axis(28, 5, 2, 0, 0)}) {
    checkAll(depthwise(2, 3, square, other), 5);
    checkAll(depthwise(2, 3, other, square), 6);
  }
  checkAll(depthwise(2, 3, square, square, 2), 7);
}

// Blocks of rows that are whole or not.
TEST(ConvDepthwise, Heights) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t stride : {1, 2})
      for (int64_t height = 1; height <= 17; ++height)
        checkAll(depthwise(2, 2, axis(height, kernel, stride, kernel / 2, kernel / 2),
                           axis(18, kernel, stride, kernel / 2, kernel / 2)),
                 static_cast<uint64_t>(height));
}

// Large filters on planes whose rows are a vector or less: one block of rows, several, and planes that are
// lower than one; pairs of planes and one that is left over.
TEST(ConvDepthwise, BlocksOfRows) {
  for (int64_t kernel : {5, 7})
    for (int64_t height = 1; height <= 18; ++height)
      for (int64_t width : {5, 7, 8, 9, 14, 16})
        checkAll(depthwise(1, 3, axis(height, kernel, 1, kernel / 2, kernel / 2),
                           axis(width, kernel, 1, kernel / 2, kernel / 2)),
                 static_cast<uint64_t>(height * width));
  for (int64_t height = 5; height <= 33; ++height)
    for (int64_t width : {5, 7, 8, 14, 15, 16, 17, 28, 31, 32})
      checkAll(depthwise(1, 3, axis(height, 5, 2, 2, 2), axis(width, 5, 2, 2, 2)),
               static_cast<uint64_t>(height * width));
}

// Squares padded by one, of which some sizes have kernels of their own that take two or four planes at once:
// with none left over, and with one, two and three; more images than share what is done to a filter.
TEST(ConvDepthwise, Squares) {
  for (int64_t stride : {1, 2})
    for (int64_t side = 3; side <= 17; ++side)
      for (int64_t channels : {4, 5, 6, 7})
        checkAll(depthwise(5, channels, axis(side, 3, stride, 1, 1), axis(side, 3, stride, 1, 1)),
                 static_cast<uint64_t>(10 * side + channels));
}

// Such squares but for a row or a column, or padded otherwise, are not taken for them.
TEST(ConvDepthwise, AlmostSquares) {
  for (int64_t stride : {1, 2})
    for (int64_t side : {4, 7, 8, 14}) {
      const ConvAxis square = axis(side, 3, stride, 1, 1);
      for (const ConvAxis& other :
           {axis(side + 1, 3, stride, 1, 1), axis(side - 1, 3, stride, 1, 1), axis(side, 3, stride, 0, 2),
            axis(side, 3, stride, 2, 0), axis(side, 3, stride, 0, 0), axis(side, 3, stride, 1, 2)}) {
        checkAll(depthwise(2, 5, square, other), static_cast<uint64_t>(side));
        checkAll(depthwise(2, 5, other, square), static_cast<uint64_t>(side));
        checkAll(depthwise(2, 5, other, other), static_cast<uint64_t>(side));
      }
    }
}

// Large filters on rows of 7 and 14 pixels, a channel in each lane: sixteen, twice as many, some left over
// and too few; any number of rows, padded in any way, until there are too many pixels.
TEST(ConvDepthwise, ChannelsInLanes) {
  for (int64_t kernel : {5, 7})
    for (int64_t stride : {1, 2})
      for (int64_t width : {7, 14})
        for (int64_t channels : {15, 16, 19, 32}) {
          const ConvAxis row = axis(width, kernel, stride, kernel / 2, kernel / 2);
          const auto seed = static_cast<uint64_t>(width * channels);
          for (int64_t height : {3, 5, 7, 14, 18, 19, 37})
            checkAll(depthwise(1, channels, axis(height, kernel, stride, kernel / 2, kernel / 2), row), seed);
          checkAll(depthwise(2, channels, axis(9, kernel, stride, 0, kernel - 1), row), seed);
          checkAll(depthwise(2, channels, axis(9, kernel, stride, kernel + 1, 0), row), seed);
          checkAll(depthwise(6, channels, row, row), seed);
        }
  const ConvAxis row = axis(7, 7, 1, 3, 3);
  checkAll(depthwise(2, 16, row, row, 2), 3);
  checkAll(depthwise(2, 16, row, axis(7, 7, 1, 2, 4)), 4);
  checkAll(depthwise(2, 16, axis(14, 5, 2, 2, 2), axis(14, 5, 2, 2, 1)), 5);
  checkAll(depthwise(2, 16, axis(14, 5, 2, 2, 2), axis(14, 5, 2, 2, 3)), 6);
}

// None, on one side, more than the kernel reaches; windows and taps that meet padding alone; odd and even, by
// which strides of two begin.
TEST(ConvDepthwise, Padding) {
  for (int64_t stride : {1, 2})
    for (int64_t low = 0; low <= 5; ++low)
      for (int64_t high : {int64_t{0}, 5 - low, int64_t{6}})
        checkAll(depthwise(1, 2, axis(7, 3, stride, low, high), axis(19, 3, stride, high, low)),
                 static_cast<uint64_t>(10 * low + high));
  checkAll(depthwise(1, 2, axis(1, 7, 1, 3, 3), axis(1, 7, 1, 3, 3)), 61);
  checkAll(depthwise(1, 2, axis(2, 3, 2, 4, 5), axis(1, 3, 2, 5, 4)), 62);
  checkAll(depthwise(1, 2, axis(9, 5, 2, 1, 0), axis(40, 5, 2, 0, 1)), 63);
  checkAll(depthwise(1, 2, axis(9, 7, 2, 0, 5), axis(70, 7, 2, 5, 0)), 64);
}

// What does not fit is left to the other methods.
TEST(ConvDepthwise, OtherFilters) {
  for (ConvShape shape : {depthwise(1, 2, axis(9, 3, 3, 1, 1), axis(9, 3, 3, 1, 1)),
                          depthwise(1, 2, axis(9, 3, 1, 1, 1), axis(9, 3, 2, 1, 1)),
                          depthwise(1, 2, axis(9, 3, 1, 2, 2, 2), axis(9, 3, 1, 2, 2, 2)),
                          depthwise(1, 2, axis(9, 3), axis(9, 5)), depthwise(1, 2, axis(9, 1), axis(9, 1)),
                          depthwise(1, 2, axis(4, 3, 1, 1, 1), axis(513, 3, 1, 1, 1)),
                          depthwise(1, 2, axis(9, 3), axis(9, 3), 5),
                          depthwise(16, 2, axis(4, 7, 1, 3, 3), axis(4, 7, 1, 3, 3), 1)}) {
    ASSERT_TRUE(countWindows(shape));
    for (ConvKind kind : kKinds) {
      shape.kind = kind;
      const bool by_images = shape.batch == 16 && kind != ConvKind::filter_gradient;
      if (shape.batch == 1 || by_images)
        EXPECT_NE(convMethod(shape), ConvMethod::depthwise) << describe(shape);
      if (by_images) EXPECT_EQ(convMethod(shape), ConvMethod::by_images) << describe(shape);
      checkShape<float>(shape, DataType::f32, 70);
    }
  }
}

TEST(ConvDepthwise, SeveralOutputsForEachChannel) {
  for (int64_t outputs : {2, 3, 4})
    for (int64_t stride : {1, 2})
      checkAll(depthwise(3, 5, axis(9, 3, stride, 1, 1), axis(18, 3, stride, 1, 1), outputs),
               static_cast<uint64_t>(70 + outputs));
}

/// Several strips of rows, the last one lower; more channels than a tile has, and than are read at once, the
/// last time fewer; parts of the batch.
std::vector<ConvShape> shapesOfTiles() {
  std::vector<ConvShape> shapes;
  for (ConvKind kind : kKinds)
    for (ConvShape shape : {depthwise(2, 3, axis(101, 3, 1, 1, 1), axis(112, 3, 1, 1, 1)),
                            depthwise(3, 3, axis(99, 5, 2, 2, 2), axis(112, 5, 2, 2, 2)),
                            depthwise(5, 333, axis(7, 3, 1, 1, 1), axis(7, 3, 1, 1, 1)),
                            depthwise(4, 75, axis(14, 7, 1, 3, 3), axis(15, 7, 1, 3, 3)),
                            depthwise(9, 50, axis(14, 5, 2, 2, 2), axis(14, 5, 2, 2, 2)),
                            depthwise(7, 37, axis(7, 7, 1, 3, 3), axis(7, 7, 1, 3, 3)),
                            depthwise(37, 4, axis(30, 3, 1, 1, 1), axis(40, 3, 1, 1, 1)),
                            depthwise(2, 2, axis(33, 7, 1, 3, 3), axis(512, 7, 1, 3, 3))}) {
      shape.kind = kind;
      EXPECT_TRUE(countWindows(shape));
      EXPECT_EQ(convMethod(shape), ConvMethod::depthwise);
      shapes.push_back(shape);
    }
  return shapes;
}

TEST(ConvDepthwise, StripsBlocksAndParts) {
  bool strips = false, blocks = false, reads = false, parts = false;
  for (const ConvShape& shape : shapesOfTiles()) {
    const DepthwiseCut cut = cutDepthwise(shape);
    strips |= shape.height.output % cut.rows != 0 && cut.rows < shape.height.output;
    blocks |= shape.groups % cut.channels != 0 && cut.blocks > 1;
    reads |= cut.channels % cut.planes != 0;
    parts |= cut.parts > 1 && shape.batch % cut.parts != 0;
    checkShape<float>(shape, DataType::f32, 80);
  }
  EXPECT_TRUE(strips && blocks && reads && parts) << strips << blocks << reads << parts;
}

TEST(ConvDepthwise, BitsDoNotDependOnThreads) {
  for (const ConvShape& shape : shapesOfTiles()) {
    SCOPED_TRACE(describe(shape));
    GuardedConv<float> problem(shape, 3);
    run(shape, problem);
    const std::vector<float> whole = problem.result();
    for (int threads : {2, 3, 5}) {
      problem.poisonResult();
      run(shape, problem, threads, static_cast<uint64_t>(threads));
      EXPECT_EQ(std::memcmp(whole.data(), problem.result().data(), whole.size() * sizeof(float)), 0)
          << threads;
    }
  }
}

// What follows changes nothing of the sums.
TEST(ConvDepthwise, FinishesWhatItSummedUp) {
  std::vector<ConvShape> shapes = shapesOfTiles();
  shapes.push_back(depthwise(3, 5, axis(9, 3, 2, 1, 1), axis(18, 3, 2, 1, 1), 3));
  ASSERT_TRUE(countWindows(shapes.back()));
  for (ConvShape shape : shapes) {
    const bool forward = shape.kind == ConvKind::forward;
    if (shape.kind == ConvKind::filter_gradient) continue;
    GuardedConv<float> bare(shape, 5);
    run(shape, bare);
    shape.bias = shape.relu = forward, shape.mask = !forward;
    SCOPED_TRACE(describe(shape));
    GuardedConv<float> problem(shape, 5);
    run(shape, problem);
    const std::vector<float> expected = problem.finished(bare.result()), found = problem.result();
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0);
  }
}

// A NaN reaches the windows that hold it and no others: neither those beside it in a row's last vector, nor
// those for which it lies behind the end of the row before.
TEST(ConvDepthwise, NanStaysInItsWindows) {
  for (int64_t kernel : {3, 5, 7})
    for (int64_t stride : {1, 2})
      for (int64_t low : {int64_t{0}, int64_t{1}, kernel / 2})
        for (int64_t high : {int64_t{0}, int64_t{1}, kernel / 2})
          for (int64_t column : {0, 2, 13, 15, 16, 18}) {
            ConvShape shape =
                depthwise(2, 3, axis(8, kernel, stride, low, low), axis(19, kernel, stride, low, high));
            ASSERT_TRUE(countWindows(shape));
            for (ConvKind kind : kKinds) {
              shape.kind = kind;
              SCOPED_TRACE(describe(shape));
              GuardedConv<float> problem(shape, 3);
              problem.x()[3 * 19 + column] = std::numeric_limits<float>::quiet_NaN();
              run(shape, problem);
              EXPECT_EQ(problem.firstError(), "");
            }
          }
}

// Nor those that it is loaded beside, where rows of squares are taken with what lies behind them.
TEST(ConvDepthwise, NanStaysInItsWindowsOfSquares) {
  for (int64_t stride : {1, 2})
    for (int64_t side = 3; side <= 16; ++side) {
      ConvShape shape = depthwise(2, 5, axis(side, 3, stride, 1, 1), axis(side, 3, stride, 1, 1));
      ASSERT_TRUE(countWindows(shape));
      // A row's last element, the one behind it, and the last row's first one.
      for (int64_t element : {side - 1, side, side * (side - 1)})
        for (ConvKind kind : kKinds) {
          shape.kind = kind;
          SCOPED_TRACE(describe(shape));
          GuardedConv<float> problem(shape, 3);
          problem.x()[element] = std::numeric_limits<float>::quiet_NaN();
          run(shape, problem);
          EXPECT_EQ(problem.firstError(), "");
        }
    }
}

TEST(ConvDepthwise, RandomShapes) {
  std::mt19937_64 random(9);
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int checked = 0; checked < 100;) {
    const int64_t kernel = 1 + 2 * upTo(3), stride = upTo(2);
    auto any = [&] { return axis(upTo(60), kernel, stride, upTo(8) - 1, upTo(8) - 1); };
    ConvShape shape = depthwise(upTo(4), 1 + upTo(9), any(), any(), upTo(2));
    if (!countWindows(shape)) continue;
    checkAll(shape, random());
    ++checked;
  }
}

TEST(ConvDepthwise, RunAllocatesNothing) {
  for (const ConvShape& shape : shapesOfTiles()) {
    GuardedConv<float> problem(shape, 5);
    Result<ConvKernel> kernel = ConvKernel::create(shape, convWorkspaceBytes(shape));
    ASSERT_TRUE(kernel.ok());
    const ConvOperands operands = problem.operands();
    const AllocationCount before = allocationCount();
    for (int phase = 0; phase < kernel->phaseCount(); ++phase)
      kernel->run(phase, operands, 0, kernel->tiles(phase));
    EXPECT_EQ(allocationCount().total(), before.total());
  }
}

// Nothing is packed; the parts of a filter's gradient are added up at the end.
TEST(ConvDepthwise, WorkspaceHoldsThePartsOfAFiltersGradient) {
  ConvShape shape = depthwise(8, 4, axis(9, 3, 1, 1, 1), axis(18, 3, 1, 1, 1));
  ASSERT_TRUE(countWindows(shape));
  EXPECT_EQ(convWorkspaceBytes(shape), 0);
  shape.kind = ConvKind::filter_gradient;
  EXPECT_EQ(convWorkspaceBytes(shape), 8 * 4 * 9 * 4);  // a part for each image
  EXPECT_EQ(ConvKernel::create(shape, 100).message(),
            "conv: the plan gives 100 bytes of workspace, 1152 are needed; compile the plan again with this "
            "version of gpuc");
}

}  // namespace
}  // namespace gpuc
