// The host's attention against plain loops in f64: values, bits, bounds of memory, allocations, errors.
#include "runtime/host/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/attention_reference.h"

namespace gpuc {
namespace {

AttentionKernel kernelFor(const AttentionShape& shape) {
  Result<AttentionKernel> kernel = AttentionKernel::create(shape, attentionWorkspaceBytes(shape));
  EXPECT_TRUE(kernel.ok()) << kernel.message();
  return kernel.ok() ? *std::move(kernel) : AttentionKernel();
}

/// Runs all tiles of all phases in one thread.
void runWhole(const AttentionKernel& kernel, const AttentionOperands& operands) {
  for (int phase = 0; phase < kernel.phaseCount(); ++phase)
    kernel.run(phase, operands, 0, kernel.tiles(phase));
}

template <typename T>
void checkKind(const AttentionShape& shape, uint64_t seed) {
  SCOPED_TRACE(describe(shape));
  GuardedAttention<T> problem(shape, seed);
  problem.computeForward();
  if (shape.kind == AttentionKind::gradient) {
    problem.roundForward();
    problem.computeGradient();
  }
  runWhole(kernelFor(shape), problem.operands());
  EXPECT_EQ(problem.firstError(), "");
}

/// Both kinds in both types and all layouts.
void checkAll(AttentionShape shape, uint64_t seed) {
  for (Lay lay : {Lay::dense, Lay::inside, Lay::gaps}) {
    setLayouts(shape, lay);
    for (AttentionKind kind : {AttentionKind::forward, AttentionKind::gradient}) {
      shape.kind = kind;
      shape.mask_gradient = kind == AttentionKind::gradient && shape.mask == AttentionMask::addends;
      shape.type = DataType::f32;
      checkKind<float>(shape, seed);
      shape.type = DataType::f64;
      checkKind<double>(shape, seed);
    }
  }
}

AttentionShape makeShape(int64_t batch, int64_t heads, int64_t groups, int64_t queries, int64_t keys,
                         int64_t width, int64_t value_width, bool causal = false) {
  AttentionShape shape;
  shape.batch = batch, shape.heads = heads, shape.groups = groups;
  shape.queries = queries, shape.keys = keys;
  shape.width = width, shape.value_width = value_width;
  shape.scale = 1 / std::sqrt(static_cast<double>(width));
  shape.causal = causal;
  return shape;
}

TEST(Attention, HeadsOfTutorials) {
  checkAll(makeShape(2, 4, 4, 64, 64, 32, 32, true), 1);
  checkAll(makeShape(1, 2, 2, 64, 64, 64, 64), 2);
  checkAll(makeShape(1, 2, 2, 33, 65, 16, 16, true), 3);
}

TEST(Attention, ExtentsOfOne) {
  checkAll(makeShape(1, 1, 1, 1, 1, 1, 1), 4);
  checkAll(makeShape(3, 2, 1, 1, 40, 5, 3), 5);        // one query, as when a text is continued
  checkAll(makeShape(3, 2, 1, 40, 1, 5, 3, true), 6);  // one key
  checkAll(makeShape(1, 1, 1, 3, 2, 1, 1, true), 7);
}

// Queries and keys in several blocks, the last cut short; causal ones with keys that nobody sees, and queries
// that see all.
TEST(Attention, SeveralBlocks) {
  for (bool causal : {false, true}) {
    checkAll(makeShape(1, 2, 2, 130, 130, 24, 40, causal), 8);
    checkAll(makeShape(1, 1, 1, 70, 300, 8, 8, causal), 9);
    checkAll(makeShape(2, 1, 1, 300, 70, 8, 8, causal), 10);
    checkAll(makeShape(5, 4, 4, 150, 140, 9, 7, causal), 11);  // one part
  }
}

TEST(Attention, HeadsThatShareKeys) {
  checkAll(makeShape(2, 6, 3, 20, 30, 8, 8), 12);
  checkAll(makeShape(1, 4, 1, 80, 90, 8, 8, true), 13);
  checkAll(makeShape(9, 4, 2, 17, 90, 8, 8, true), 14);
}

TEST(Attention, WideHeads) {
  checkAll(makeShape(1, 1, 1, 70, 70, 256, 256, true), 15);
  checkAll(makeShape(1, 1, 1, 10, 70, 256, 3), 16);
  checkAll(makeShape(1, 1, 1, 10, 70, 3, 256), 17);
}

// Every way to repeat a mask: 16 of flags and 16 of addends, whose gradient is summed accordingly.
TEST(Attention, Masks) {
  for (int form = 0; form < 32; ++form) {
    const bool causal = form % 3 == 0;
    AttentionShape shape = makeShape(2, 4, 2, 70, 75, 8, 6, causal);
    setMask(shape, form < 16 ? AttentionMask::flags : AttentionMask::addends,
            {(form & 1) != 0, (form & 2) != 0, (form & 4) != 0, (form & 8) != 0});
    checkAll(shape, 100 + static_cast<uint64_t>(form));
  }
}

TEST(Attention, Dropout) {
  for (int64_t keys : {7, 64, 150}) {
    AttentionShape shape = makeShape(2, 2, 1, 70, keys, 8, 8, keys == 64);
    shape.id = 11;
    for (double p : {0.3, 0.5, 1.0}) {
      shape.dropout = p;
      checkAll(shape, 200 + static_cast<uint64_t>(keys));
    }
  }
}

AttentionShape randomShape(std::mt19937_64& random) {
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  const int64_t groups = upTo(3);
  AttentionShape shape = makeShape(upTo(3), groups * upTo(3), groups, upTo(100), upTo(150), upTo(40),
                                   upTo(40), random() % 2 == 0);
  if (random() % 3 == 0) shape.scale = -0.7;
  if (const auto mask = static_cast<AttentionMask>(random() % 3); mask != AttentionMask::none)
    setMask(shape, mask, {random() % 2 == 0, random() % 2 == 0, random() % 2 == 0, random() % 2 == 0});
  if (random() % 3 == 0) shape.dropout = 0.25, shape.id = upTo(1000);
  return shape;
}

TEST(Attention, RandomShapes) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) checkAll(randomShape(random), random());
}

// Computed whole, and by random splits in random order by three threads. The bits must agree.
TEST(Attention, BitsDoNotDependOnTheSplit) {
  std::mt19937_64 random(11);
  AttentionShape shape = makeShape(1, 6, 3, 190, 210, 24, 24, true);  // in parts
  setMask(shape, AttentionMask::addends, {false, true, true, true});
  shape.dropout = 0.1;
  for (AttentionKind kind : {AttentionKind::forward, AttentionKind::gradient}) {
    shape.kind = kind;
    shape.mask_gradient = kind == AttentionKind::gradient;
    setLayouts(shape, Lay::inside);
    GuardedAttention<float> problem(shape, 3);
    if (kind == AttentionKind::gradient) problem.computeForward(), problem.roundForward();
    AttentionKernel kernel = kernelFor(shape);
    EXPECT_EQ(kernel.phaseCount(), kind == AttentionKind::forward ? 1 : 3);
    runWhole(kernel, problem.operands());
    const std::vector<float> whole = problem.results();
    problem.poisonResults();
    if (kind == AttentionKind::gradient) problem.roundForward();
    for (int phase = 0; phase < kernel.phaseCount(); ++phase) {
      EXPECT_GT(kernel.tiles(phase), 1);
      std::vector<int64_t> tiles(static_cast<size_t>(kernel.tiles(phase)));
      for (size_t i = 0; i < tiles.size(); ++i) tiles[i] = static_cast<int64_t>(i);
      std::shuffle(tiles.begin(), tiles.end(), random);
      auto runThird = [&](size_t first) {
        for (size_t i = first; i < tiles.size(); i += 3)
          kernel.run(phase, problem.operands(), tiles[i], tiles[i] + 1);
      };
      std::thread second(runThird, 1), third(runThird, 2);
      runThird(0);
      second.join();
      third.join();
    }
    const std::vector<float> split = problem.results();
    EXPECT_EQ(std::memcmp(whole.data(), split.data(), whole.size() * sizeof(float)), 0);
  }
}

// A query that sees no key gives 0 and a logarithm of -∞; its gradients are 0.
TEST(Attention, QueriesThatSeeNothing) {
  AttentionShape shape = makeShape(1, 1, 1, 70, 130, 8, 8);
  setMask(shape, AttentionMask::flags, {false, false, true, true});
  for (AttentionKind kind : {AttentionKind::forward, AttentionKind::gradient}) {
    shape.kind = kind;
    setLayouts(shape, Lay::dense);
    GuardedAttention<float> problem(shape, 3);
    std::fill_n(problem.flags.data() + 3 * 130, 130, uint8_t{0});
    std::fill_n(problem.flags.data() + 69 * 130, 64, uint8_t{0});  // nothing in the first block
    problem.computeForward();
    if (kind == AttentionKind::gradient) problem.roundForward(), problem.computeGradient();
    runWhole(kernelFor(shape), problem.operands());
    EXPECT_EQ(problem.firstError(), "");
    GuardedTensor<float>& rows = kind == AttentionKind::forward ? problem.result : problem.query_cotangent;
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(rows.at(0, 0, 3, i), 0);
    EXPECT_EQ(problem.logs.at(0, 0, 3, 0), -std::numeric_limits<float>::infinity());
  }
}

// NaN in a query reaches its own row; in a key that is hidden by a flag or by the order, nobody.
TEST(Attention, NanStaysWithWhoSeesIt) {
  AttentionShape shape = makeShape(1, 1, 1, 90, 90, 8, 8, true);
  setLayouts(shape, Lay::dense);
  GuardedAttention<float> problem(shape, 3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  problem.query.at(0, 0, 5, 2) = nan;
  problem.key.at(0, 0, 80, 1) = nan;
  problem.computeForward();
  runWhole(kernelFor(shape), problem.operands());
  EXPECT_EQ(problem.firstError(), "");
  for (int64_t t = 0; t < 90; ++t)
    EXPECT_EQ(std::isnan(problem.result.at(0, 0, t, 0)), t == 5 || t >= 80) << t;
}

// Scores far apart and large: nothing overflows, and what is far below the largest is 0.
TEST(Attention, LargeScores) {
  AttentionShape shape = makeShape(1, 1, 1, 3, 200, 1, 1);
  shape.scale = 1000;
  checkAll(shape, 6);
}

// Of rows that are all but decided no cotangent comes near the numbers at which products take long: what is
// left of a key is 0 or within its row's reach.
TEST(Attention, FarScoresHaveNoCotangents) {
  AttentionShape shape = makeShape(1, 1, 1, 3, 200, 1, 1);
  shape.scale = 1000;
  shape.kind = AttentionKind::gradient;
  setLayouts(shape, Lay::dense);
  GuardedAttention<float> problem(shape, 6);
  problem.computeForward();
  problem.roundForward();
  runWhole(kernelFor(shape), problem.operands());
  int64_t zeros = 0;
  for (auto* tensor : {&problem.query_cotangent, &problem.key_cotangent, &problem.value_cotangent})
    for (int64_t i = 0; i < tensor->data.size(); ++i) {
      const float value = tensor->data.data()[i];
      zeros += value == 0;
      EXPECT_TRUE(value == 0 || std::abs(value) > 1e-30F) << value;
    }
  EXPECT_GT(zeros, 100);
}

TEST(Attention, RunAllocatesNothing) {
  for (AttentionKind kind : {AttentionKind::forward, AttentionKind::gradient}) {
    AttentionShape shape = makeShape(1, 2, 2, 150, 150, 16, 16, true);
    shape.kind = kind;
    shape.dropout = 0.5;
    setLayouts(shape, Lay::dense);
    GuardedAttention<float> problem(shape, 5);
    AttentionKernel kernel = kernelFor(shape);
    const AttentionOperands operands = problem.operands();
    const AllocationCount before = allocationCount();
    runWhole(kernel, operands);
    EXPECT_EQ(allocationCount().total(), before.total());
  }
}

// The plan reserves what the compiler computed; a runtime that needs more must say so.
TEST(Attention, WorkspaceHoldsThePartsOfTheQuerysCotangent) {
  AttentionShape shape = makeShape(1, 4, 4, 1000, 1024, 64, 64, true);
  EXPECT_EQ(attentionWorkspaceBytes(shape), 0);
  shape.kind = AttentionKind::gradient;
  // 4 tiles of whole heads are too few for 16: 4 parts each.
  EXPECT_EQ(attentionWorkspaceBytes(shape), 4 * 4 * 1000 * 64 * 4);
  setLayouts(shape, Lay::dense);
  Result<AttentionKernel> kernel = AttentionKernel::create(shape, 100);
  EXPECT_EQ(
      kernel.message(),
      "attention: the plan gives 100 bytes of workspace, 4096000 are needed; compile the plan again with "
      "this version of gpuc");
  shape.batch = 4;
  EXPECT_EQ(attentionWorkspaceBytes(shape), 0);
}

TEST(Attention, ErrorsNameTheCulprit) {
  auto errorOf = [](AttentionShape shape) {
    setLayouts(shape, Lay::dense);
    return AttentionKernel::create(shape, attentionWorkspaceBytes(shape)).message();
  };
  const AttentionShape shape = makeShape(2, 4, 2, 7, 8, 3, 3);
  AttentionShape half = shape;
  half.type = DataType::f16;
  EXPECT_EQ(errorOf(half), "attention: element type f16 is not supported on the host, only f32 and f64 are");
  AttentionShape empty = shape;
  empty.keys = 0;
  EXPECT_EQ(errorOf(empty), "attention: an extent of 0");
  AttentionShape grouped = shape;
  grouped.groups = 3;
  EXPECT_EQ(errorOf(grouped), "attention: 3 groups do not divide 4 heads");
  AttentionShape wide = shape;
  wide.value_width = 257;
  EXPECT_EQ(errorOf(wide), "attention: heads of 3 and 257 elements, at most 256 are supported on the host");
}

}  // namespace
}  // namespace gpuc
