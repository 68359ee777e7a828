// The host's convolutions by channels, for many channels: values against plain loops in f64, bits, bounds of
// memory, allocations.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "runtime/host/conv.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/conv_reference.h"
#include "test/runtime/half_operands.h"

namespace gpuc {
namespace {

constexpr ConvKind kKinds[] = {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient};
constexpr ConvMethod kMethod = ConvMethod::by_channels;

template <typename T>
void run(const ConvShape& shape, GuardedConv<T>& problem, int threads = 1, uint64_t seed = 0) {
  Result<ConvKernel> kernel = ConvKernel::create(shape, kMethod, convWorkspaceBytes(shape, kMethod));
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
  ASSERT_TRUE(fitsMethod(shape, kMethod));
  GuardedConv<T> problem(shape, seed, kMethod);
  run(shape, problem);
  EXPECT_EQ(problem.firstError(), "");
}

/// All three convolutions in both types.
void checkAll(ConvShape shape, uint64_t seed) {
  ASSERT_TRUE(countWindows(shape));
  for (ConvKind kind : kKinds) {
    shape.kind = kind;
    checkShape<float>(shape, DataType::f32, seed);
    checkShape<double>(shape, DataType::f64, seed);
  }
}

ConvAxis same(int64_t input, int64_t stride = 1) { return axis(input, 3, stride, 1, 1); }

// On 1x1 and 2x2 most taps meet padding alone, each pixel others.
TEST(ConvChannels, SmallPictures) {
  for (int64_t extent : {1, 2, 3, 4, 7, 8})
    checkAll(makeShape(3, 40, 36, same(extent), same(extent)), static_cast<uint64_t>(extent));
  checkAll(makeShape(2, 33, 32, same(1), same(5)), 10);
  checkAll(makeShape(2, 32, 32, axis(2, 5, 1, 2, 2), axis(3, 7, 1, 3, 3)), 11);  // smaller than the filter
}

// Blocks of lanes that are filled or not, chunks of channels that are cut short.
TEST(ConvChannels, Channels) {
  for (int64_t channels : {32, 33, 47, 48, 63, 64, 65, 97, 130})
    checkAll(makeShape(2, channels, 163 - channels, same(3), same(2)), static_cast<uint64_t>(channels));
}

// Rows of sums in blocks of each height; parts of the batch, the last one smaller.
TEST(ConvChannels, Batches) {
  for (int64_t batch = 1; batch <= 17; ++batch)
    checkAll(makeShape(batch, 32, 36, same(2), same(3)), static_cast<uint64_t>(batch));
  const ConvShape shape = makeShape(43, 33, 35, same(7), same(6));
  checkAll(shape, 20);
}

TEST(ConvChannels, PartsAreOfUnequalSize) {
  ConvShape shape = makeShape(43, 33, 35, same(7), same(6));
  ASSERT_TRUE(countWindows(shape));
  const ChannelsCut cut = cutChannels(shape);
  EXPECT_GT(cut.parts, 1);
  EXPECT_NE(shape.batch % cut.images, 0);
}

// Columns of the remainders 0 and 1 are 4 and 3 of 7, but have room for 4 each among the sums.
TEST(ConvChannels, SumsOfStridesFit) {
  checkAll(makeShape(30, 32, 33, same(7, 2), same(7, 2)), 34);
  checkAll(makeShape(30, 32, 33, axis(7, 1, 3), axis(7, 1, 3)), 35);
}

// Of larger pictures a tile computes a strip of rows, the last one lower; a filter's gradient is split.
TEST(ConvChannels, StripsAndSplits) {
  for (ConvShape shape :
       {makeShape(5, 33, 40, same(17), same(15)), makeShape(9, 32, 33, same(16, 2), same(16, 2)),
        makeShape(9, 40, 64, axis(16, 1, 2, 1, 1), axis(15, 1, 2)),
        makeShape(3, 32, 32, axis(1, 3, 1, 1, 1), axis(256, 5, 1, 2, 2))}) {
    ASSERT_TRUE(countWindows(shape));
    checkAll(shape, 36);
    shape.kind = ConvKind::filter_gradient;
    EXPECT_GT(cutChannels(shape).splits, 1);
  }
  ConvShape shape = makeShape(5, 33, 40, same(17), same(15));
  ASSERT_TRUE(countWindows(shape));
  EXPECT_GT(cutChannels(shape).strips, 1);
  EXPECT_NE(shape.height.output % cutChannels(shape).strip_rows, 0);
}

// Where a round has one part alone, two threads have as many of its strips, and share what it packs.
TEST(ConvChannels, RoundsForTwo) {
  ConvShape shape = makeShape(8, 48, 192, same(24), same(24));
  ASSERT_TRUE(countWindows(shape));
  shape.kind = ConvKind::input_gradient;
  const ChannelsCut cut = cutChannels(shape);
  EXPECT_EQ(cut.round_parts, 1);
  EXPECT_GT(cut.rounds, 1);
  EXPECT_GT(cut.strips, 1);
  EXPECT_EQ(cut.blocks * cut.strips % 2, 0);
  ConvShape large = makeShape(2, 32, 32, same(112), same(112));
  ASSERT_TRUE(countWindows(large));
  EXPECT_EQ(cutChannels(large).round_parts, 1);
  const Result<ConvKernel> kernel =
      ConvKernel::create(large, ConvMethod::by_channels, convWorkspaceBytes(large, ConvMethod::by_channels));
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  EXPECT_GT(kernel->tiles(0), 1);
  // Of few lanes and pixels: all rounds together have two tiles, but each round would have one.
  ConvShape few = makeShape(16, 128, 64, axis(20, 9, 2), axis(20, 9, 2));
  ASSERT_TRUE(countWindows(few));
  EXPECT_EQ(cutChannels(few).blocks * cutChannels(few).round_parts, 1);
  EXPECT_EQ(cutChannels(few).strips, 2);
  ConvShape small = makeShape(4, 512, 64, same(7), same(7));
  ASSERT_TRUE(countWindows(small));
  EXPECT_EQ(cutChannels(small).strips, 2);
}

// A row of the result has to fit a tile's sums.
TEST(ConvChannels, WidestPictures) {
  for (int64_t width : {511, 512, 513}) {
    ConvShape shape = makeShape(1, 32, 32, axis(1, 1), axis(width, 3, 1, 1, 1));
    ASSERT_TRUE(countWindows(shape));
    EXPECT_EQ(fitsMethod(shape, kMethod), width == 511);
    for (ConvKind kind : kKinds) {
      if (width != 511) continue;
      shape.kind = kind;
      GuardedConv<float> problem(shape, 38, kMethod);
      run(shape, problem);
      EXPECT_EQ(problem.firstError(), "");
    }
  }
}

// More images than are packed at once, the last time fewer.
TEST(ConvChannels, Rounds) {
  for (ConvShape shape :
       {makeShape(18, 160, 32, same(16, 2), same(16, 2)), makeShape(25, 64, 32, same(16), same(16))}) {
    ASSERT_TRUE(countWindows(shape));
    shape.kind = ConvKind::filter_gradient;
    const ChannelsCut cut = cutChannels(shape);
    EXPECT_GT(cut.rounds, 1);
    EXPECT_NE(cut.parts % cut.round_parts, 0);
    for (ConvKind kind : kKinds) {
      shape.kind = kind;
      GuardedConv<float> problem(shape, 37, kMethod);
      run(shape, problem, 2, 1);
      EXPECT_EQ(problem.firstError(), "");
    }
  }
}

// A stride packs columns by their remainder; some are read by no window.
TEST(ConvChannels, Strides) {
  for (int64_t stride : {2, 3})
    for (int64_t extent : {2, 5, 8}) {
      checkAll(makeShape(3, 32, 40, same(extent, stride), same(extent, 5 - stride)), 30);
      checkAll(makeShape(2, 40, 33, axis(extent, 1, stride), axis(extent, 1, 5 - stride)), 31);
    }
  checkAll(makeShape(2, 32, 33, axis(7, 2, 4, 1, 2), axis(8, 2, 4, 1, 2)), 32);
  checkAll(makeShape(2, 32, 33, axis(7, 1, 2, 1, 1), axis(6, 1, 2, 1, 1)), 33);  // the odd columns alone
}

TEST(ConvChannels, DilationAndGroups) {
  checkAll(makeShape(3, 32, 33, axis(7, 3, 1, 2, 2, 2), axis(8, 3, 1, 3, 3, 3)), 40);
  checkAll(makeShape(3, 33, 32, axis(7, 3, 2, 2, 1, 2), axis(8, 2, 3, 1, 3, 3)), 41);
  checkAll(makeShape(3, 66, 96, same(5), same(4, 2), 2), 42);
  checkAll(makeShape(3, 99, 96, axis(3, 1), axis(3, 1), 3), 43);
}

// Windows and taps that meet nothing but padding.
TEST(ConvChannels, WidePadding) {
  checkAll(makeShape(2, 32, 33, axis(2, 3, 1, 3, 3), axis(1, 3, 1, 3, 3)), 50);
  checkAll(makeShape(2, 32, 33, axis(3, 2, 2, 4, 3), axis(2, 3, 2, 3, 3)), 51);
}

// As a capsule network has them, and as many as there may be.
TEST(ConvChannels, ManyTaps) {
  checkAll(makeShape(3, 40, 33, axis(20, 9, 2), axis(19, 9, 2)), 52);
  checkAll(makeShape(2, 33, 32, axis(9, 8, 1, 4, 3), axis(12, 16, 1, 8, 7)), 53);  // 128
  EXPECT_FALSE(fitsMethod(makeShape(2, 33, 32, axis(9, 3, 1, 1, 1), axis(45, 43, 1, 21, 21)), kMethod));
}

TEST(ConvChannels, RandomShapes) {
  std::mt19937_64 random(9);
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int checked = 0; checked < 20;) {
    auto any = [&] { return axis(upTo(8), upTo(5), upTo(3), upTo(4) - 1, upTo(4) - 1, upTo(2)); };
    const int64_t groups = upTo(2);
    ConvShape shape =
        makeShape(upTo(20), groups * (31 + upTo(9)), groups * (31 + upTo(9)), any(), any(), groups);
    if (!countWindows(shape) || !fitsMethod(shape, kMethod)) continue;
    checkAll(shape, random());
    ++checked;
  }
}

TEST(ConvChannels, FewChannels) {
  std::mt19937_64 random(10);
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int checked = 0; checked < 60;) {
    auto any = [&] { return axis(upTo(8), upTo(4), upTo(3), upTo(4) - 1, upTo(4) - 1, upTo(2)); };
    const int64_t groups = upTo(3), inputs = upTo(27), outputs = upTo(57);
    ConvShape shape = makeShape(upTo(20), groups * inputs, groups * outputs, any(), any(), groups);
    shape.kind = kKinds[random() % 3];
    if (!countWindows(shape) || !fitsMethod(shape, kMethod)) continue;
    checkShape<float>(shape, DataType::f32, random());
    ++checked;
  }
}

/// All three convolutions in both types.
void checkJoined(ConvShape shape, uint64_t seed) {
  ASSERT_TRUE(countWindows(shape));
  SCOPED_TRACE(describe(shape));
  EXPECT_GT(joinedGroups(shape), 1);
  for (ConvKind kind : kKinds) {
    shape.kind = kind;
    for (DataType type : {DataType::f32, DataType::f64}) {
      shape.type = type;
      auto check = [&]<typename T>(T) {
        GuardedConv<T> problem(shape, seed, kMethod);
        problem.x()[3] = std::numeric_limits<T>::quiet_NaN();  // which stays in its group
        run(shape, problem, 2, seed);
        EXPECT_EQ(problem.firstError(), "");
      };
      type == DataType::f32 ? check(0.f) : check(0.0);
    }
    shape.type = DataType::f32;
  }
}

// Groups of four and eight channels that fill vectors together, the last vector or not; too few for one; by
// strides, with dilation, wide padding, several rounds; one image, and filters of many taps.
TEST(ConvChannels, GroupsSideBySide) {
  for (int64_t channels : {4, 8})
    for (int64_t groups : {2, 3, 4, 5, 7, 8})
      checkJoined(makeShape(groups, channels * groups, channels * groups, same(9, 2), same(7, 2), groups),
                  static_cast<uint64_t>(60 + groups));
  checkJoined(makeShape(3, 56, 56, same(6), same(13), 7), 70);
  checkJoined(makeShape(1, 28, 28, same(5), same(20), 7), 71);
  checkJoined(makeShape(2, 40, 40, axis(15, 5, 2, 2, 2), axis(14, 7, 3, 3, 3), 5), 72);
  checkJoined(makeShape(2, 24, 24, axis(11, 3, 2, 2, 1, 2), axis(12, 4, 2, 5, 4), 6), 73);
  checkJoined(makeShape(2, 32, 32, axis(9, 8, 1, 3, 4), axis(9, 8, 1, 4, 3), 4), 74);  // 64 taps
  EXPECT_FALSE(fitsMethod(makeShape(2, 32, 32, axis(9, 8, 1, 3, 4), axis(14, 9, 1, 4, 4), 4), kMethod));
  ConvShape rounds = makeShape(9, 128, 128, same(33, 2), same(35, 2), 16);
  checkJoined(rounds, 75);
  ASSERT_TRUE(countWindows(rounds));
  EXPECT_GT(cutChannels(rounds).rounds, 1);
}

TEST(ConvChannels, GroupsThatStayApart) {
  checkJoined(makeShape(16, 56, 56, same(13), same(13), 7), 76);
  for (const ConvShape& shape :
       {makeShape(2, 32, 64, same(9, 2), same(9, 2), 4), makeShape(2, 24, 24, same(9, 2), same(9, 2), 4),
        makeShape(2, 8, 8, same(9, 2), same(9, 2))})
    EXPECT_EQ(joinedGroups(shape), 1);
}

/// Shapes with several tiles in each phase.
std::vector<ConvShape> shapesOfTiles() {
  std::vector<ConvShape> shapes;
  for (ConvKind kind : kKinds)
    for (ConvShape shape :
         {makeShape(5, 70, 90, same(2), same(2)), makeShape(40, 33, 40, same(6, 2), same(6)),
          makeShape(6, 66, 80, same(16), same(12), 2), makeShape(5, 52, 52, same(37, 2), same(33, 2), 13),
          makeShape(9, 48, 72, same(17, 2), same(15, 2), 4)}) {
      shape.kind = kind;
      EXPECT_TRUE(countWindows(shape) && fitsMethod(shape, kMethod));
      shapes.push_back(shape);
    }
  return shapes;
}

TEST(ConvChannels, BitsDoNotDependOnThreads) {
  for (const ConvShape& shape : shapesOfTiles()) {
    SCOPED_TRACE(describe(shape));
    GuardedConv<float> problem(shape, 3, kMethod);
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
TEST(ConvChannels, FinishesWhatItSummedUp) {
  for (ConvShape shape : shapesOfTiles()) {
    const bool forward = shape.kind == ConvKind::forward;
    if (shape.kind == ConvKind::filter_gradient) continue;
    GuardedConv<float> bare(shape, 5, kMethod);
    run(shape, bare);
    shape.bias = shape.relu = forward, shape.mask = !forward;
    SCOPED_TRACE(describe(shape));
    GuardedConv<float> problem(shape, 5, kMethod);
    run(shape, problem);
    const std::vector<float> expected = problem.finished(bare.result()), found = problem.result();
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0);
  }
}

// A NaN reaches the windows that hold it and no others: nothing is multiplied with padding.
TEST(ConvChannels, NanStaysInItsWindows) {
  ConvShape shape = makeShape(2, 32, 33, same(4), same(4));
  ASSERT_TRUE(countWindows(shape));
  for (ConvKind kind : kKinds) {
    shape.kind = kind;
    GuardedConv<float> problem(shape, 3, kMethod);
    problem.x()[5] = std::numeric_limits<float>::quiet_NaN();
    run(shape, problem);
    EXPECT_EQ(problem.firstError(), "");
  }
}

TEST(ConvChannels, RunAllocatesNothing) {
  for (const ConvShape& shape : shapesOfTiles()) {
    GuardedConv<float> problem(shape, 5, kMethod);
    Result<ConvKernel> kernel = ConvKernel::create(shape, kMethod, convWorkspaceBytes(shape, kMethod));
    ASSERT_TRUE(kernel.ok());
    const ConvOperands operands = problem.operands();
    const AllocationCount before = allocationCount();
    for (int phase = 0; phase < kernel->phaseCount(); ++phase)
      kernel->run(phase, operands, 0, kernel->tiles(phase));
    EXPECT_EQ(allocationCount().total(), before.total());
  }
}

// The plan reserves what the compiler computed.
TEST(ConvChannels, WorkspaceHoldsThePicturesThatAreRead) {
  ConvShape shape = makeShape(2, 33, 40, same(4), same(4));
  ASSERT_TRUE(countWindows(shape));
  const int64_t x = 2 * 16 * 48 * 4, y = 2 * 16 * 48 * 4;  // 33 and 40 channels in whole vectors
  EXPECT_EQ(convWorkspaceBytes(shape, kMethod), x);
  shape.kind = ConvKind::input_gradient;
  EXPECT_EQ(convWorkspaceBytes(shape, kMethod), y);
  shape.kind = ConvKind::filter_gradient;
  EXPECT_EQ(convWorkspaceBytes(shape, kMethod), x + y);
  EXPECT_EQ(ConvKernel::create(shape, kMethod, 100).message(),
            "conv: the plan gives 100 bytes of workspace, 12288 are needed; compile the plan again with this "
            "version of gpuc");
}

}  // namespace
}  // namespace gpuc
