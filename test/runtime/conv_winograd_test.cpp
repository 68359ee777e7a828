// The host's convolutions by Winograd's filtering: values against plain loops in f64, the error that
// docs/numerics.md states, bits, bounds of memory, allocations.
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
constexpr ConvMethod kMethod = ConvMethod::winograd;

void run(const ConvShape& shape, GuardedConv<float>& problem, int threads = 1, uint64_t seed = 0) {
  Result<ConvKernel> kernel = ConvKernel::create(shape, kMethod, convWorkspaceBytes(shape, kMethod));
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  const ConvOperands operands = problem.operands();
  for (int phase = 0; phase < kernel->phaseCount(); ++phase)
    computeInThreads(kernel->tiles(phase), threads, seed,
                     [&](int64_t begin, int64_t end) { kernel->run(phase, operands, begin, end); });
}

/// All three convolutions.
void checkAll(ConvShape shape, uint64_t seed) {
  ASSERT_TRUE(countWindows(shape));
  for (ConvKind kind : kKinds) {
    shape.kind = kind;
    SCOPED_TRACE(describe(shape));
    ASSERT_TRUE(fitsWinograd(shape));
    GuardedConv<float> problem(shape, seed, kMethod);
    run(shape, problem);
    EXPECT_EQ(problem.firstError(), "");
  }
}

ConvAxis padded(int64_t input, int64_t low = 1, int64_t high = 1) { return axis(input, 3, 1, low, high); }

// Whole tiles, and those of which a row or a column stands for nothing; pictures of one tile and of few.
TEST(ConvWinograd, Extents) {
  for (int64_t height : {3, 4, 7, 8})
    for (int64_t width : {3, 5, 6}) checkAll(makeShape(3, 17, 18, padded(height), padded(width)), 1);
}

TEST(ConvWinograd, Padding) {
  for (int64_t low : {0, 1, 2})
    for (int64_t high : {0, 1, 2})
      checkAll(makeShape(2, 20, 33, padded(7, low, high), padded(8, high, low)), static_cast<uint64_t>(low));
}

// Vectors and blocks that are filled or not.
TEST(ConvWinograd, Channels) {
  for (int64_t channels : {1, 3, 15, 16, 17, 31, 63, 64, 65, 81, 130})
    checkAll(makeShape(2, channels, 140 - channels, padded(5), padded(4)), static_cast<uint64_t>(channels));
}

// Parts of whole pictures, of which the last has fewer; strips of a picture, of which the last is lower; rows
// of tiles that leave room for fewer lanes; the longest.
TEST(ConvWinograd, PartsAndStrips) {
  for (int64_t batch : {1, 4, 5, 9, 43})
    checkAll(makeShape(batch, 18, 20, padded(8), padded(7)), static_cast<uint64_t>(batch));
  checkAll(makeShape(2, 18, 70, padded(37), padded(33)), 50);
  checkAll(makeShape(2, 18, 70, padded(9), padded(131)), 51);
  checkAll(makeShape(1, 18, 70, padded(5), padded(300)), 52);
  checkAll(makeShape(1, 2, 3, padded(3), padded(512)), 53);
  ConvShape large = makeShape(2, 18, 70, padded(37), padded(33));
  ASSERT_TRUE(countWindows(large));
  EXPECT_GT(cutWinograd(large).strips, 1);
  EXPECT_NE(cutWinograd(large).rows % cutWinograd(large).strip_rows, 0);
  EXPECT_EQ(cutWinograd(large).part_strips, 1);
}

// More than is transformed at once, the last time less.
TEST(ConvWinograd, Rounds) {
  ConvShape shape = makeShape(31, 66, 34, padded(15), padded(16));
  ASSERT_TRUE(countWindows(shape));
  for (ConvKind kind : kKinds) {
    shape.kind = kind;
    EXPECT_GT(cutWinograd(shape).rounds, 1);
    EXPECT_NE(cutWinograd(shape).parts % cutWinograd(shape).round_parts, 0);
    GuardedConv<float> problem(shape, 60, kMethod);
    run(shape, problem, 2, 1);
    EXPECT_EQ(problem.firstError(), "");
  }
}

// Threads take as many of the parts that are left for the last round, not what would be left of a full one's.
TEST(ConvWinograd, LastRoundsAreShared) {
  ConvShape shape = makeShape(1, 64, 64, padded(56), padded(56));
  ASSERT_TRUE(countWindows(shape));
  const WinogradCut cut = cutWinograd(shape);
  ASSERT_EQ(cut.parts % cut.round_parts, 2);
  Result<ConvKernel> kernel = ConvKernel::create(shape, kMethod, convWorkspaceBytes(shape, kMethod));
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  EXPECT_EQ(kernel->tiles(kernel->phaseCount() - 1), 2 * cut.blocks);
}

// Filters that are not in planes all at once, the last time fewer; and, behind, in several rounds.
TEST(ConvWinograd, Turns) {
  ConvShape shape = makeShape(3, 400, 290, padded(6), padded(5));
  ASSERT_TRUE(countWindows(shape));
  EXPECT_GT(cutWinograd(shape).turns, 1);
  EXPECT_NE(cutWinograd(shape).blocks % cutWinograd(shape).turn_blocks, 0);
  checkAll(shape, 61);
  ConvShape rounds = makeShape(34, 1024, 70, padded(3), padded(3));
  ASSERT_TRUE(countWindows(rounds));
  EXPECT_GT(cutWinograd(rounds).turns, 1);
  EXPECT_GT(cutWinograd(rounds).rounds, 1);
  for (ConvKind kind : {ConvKind::forward, ConvKind::filter_gradient}) {
    rounds.kind = kind;
    GuardedConv<float> problem(rounds, 62, kMethod);
    run(rounds, problem, 2, 1);
    EXPECT_EQ(problem.firstError(), "");
  }
}

TEST(ConvWinograd, RandomShapes) {
  std::mt19937_64 random(9);
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int checked = 0; checked < 60;) {
    auto any = [&] { return padded(upTo(20), upTo(3) - 1, upTo(3) - 1); };
    ConvShape shape = makeShape(upTo(9), upTo(40), upTo(90), any(), any());
    if (!countWindows(shape) || !fitsWinograd(shape)) continue;
    checkAll(shape, random());
    ++checked;
  }
}

TEST(ConvWinograd, WhatItCannotCompute) {
  auto fits = [](ConvShape shape, ConvKind kind = ConvKind::forward) {
    EXPECT_TRUE(countWindows(shape));
    shape.kind = kind;
    return fitsWinograd(shape);
  };
  EXPECT_TRUE(fits(makeShape(2, 16, 16, padded(8), padded(8))));
  EXPECT_FALSE(fits(makeShape(2, 16, 16, axis(8, 3, 2, 1, 1), padded(8))));
  EXPECT_FALSE(fits(makeShape(2, 16, 16, axis(8, 5, 1, 2, 2), axis(8, 5, 1, 2, 2))));
  EXPECT_FALSE(fits(makeShape(2, 16, 16, axis(8, 3, 1, 2, 2, 2), padded(8))));
  EXPECT_FALSE(fits(makeShape(2, 16, 16, padded(8), padded(8), 2)));
  EXPECT_FALSE(fits(makeShape(2, 16, 16, padded(8, 3, 3), padded(8))));
  EXPECT_FALSE(fits(makeShape(2, 2, 3, padded(3), padded(513))));
  EXPECT_FALSE(fits(makeShape(1, 2049, 1, padded(3), padded(3))));
  EXPECT_FALSE(fits(makeShape(2, 16, 16, padded(2), padded(8))));  // a tap meets half of the windows
  EXPECT_FALSE(fits(makeShape(2, 16, 16, padded(5, 0, 2), padded(8))));
  ConvShape wide = makeShape(2, 16, 16, padded(8), padded(8));
  wide.type = DataType::f64;
  EXPECT_FALSE(fits(wide));
}

TEST(ConvWinograd, IsNotTakenForFewPixels) {
  for (int64_t batch : {5, 6}) {  // of 64
    ConvShape shape = makeShape(batch, 64, 64, padded(8), padded(8));
    ASSERT_TRUE(countWindows(shape));
    for (ConvKind kind : kKinds) {
      shape.kind = kind;
      EXPECT_EQ(fitsMethod(shape, kMethod), batch == 6);
      EXPECT_EQ(convMethod(shape) == kMethod, batch == 6);
    }
  }
}

/// Shapes with several tiles in each phase.
std::vector<ConvShape> shapesOfTiles() {
  std::vector<ConvShape> shapes;
  for (ConvKind kind : kKinds)
    for (ConvShape shape :
         {makeShape(43, 33, 140, padded(8), padded(7)), makeShape(9, 70, 90, padded(17), padded(20, 0, 2))}) {
      shape.kind = kind;
      EXPECT_TRUE(countWindows(shape) && fitsWinograd(shape));
      shapes.push_back(shape);
    }
  return shapes;
}

TEST(ConvWinograd, BitsDoNotDependOnThreads) {
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
TEST(ConvWinograd, FinishesWhatItSummedUp) {
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

// A NaN reaches whatever its windows reach: it may reach their neighbours in a tile, too, but is never lost.
TEST(ConvWinograd, NanIsNotLost) {
  for (ConvKind kind : kKinds) {
    ConvShape shape = makeShape(2, 20, 18, padded(6), padded(6));
    ASSERT_TRUE(countWindows(shape));
    shape.kind = kind;
    GuardedConv<float> problem(shape, 3, kMethod);
    if (kind == ConvKind::input_gradient) continue;
    problem.x()[50] = std::numeric_limits<float>::quiet_NaN();
    const auto expected = problem.expected();
    run(shape, problem);
    const std::vector<float> found = problem.result();
    for (size_t i = 0; i < found.size(); ++i)
      if (std::isnan(expected.sums[i])) EXPECT_TRUE(std::isnan(found[i])) << describe(shape) << i;
  }
}

TEST(ConvWinograd, RunAllocatesNothing) {
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

}  // namespace
}  // namespace gpuc
