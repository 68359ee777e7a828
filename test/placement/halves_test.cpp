// Halves of buffers: what the measure counts, and that moving buffers makes it smaller and nothing wrong.
#include "passes/placement/Halves.h"

#include <gtest/gtest.h>

#include "passes/placement/Solver.h"
#include "passes/placement/Validator.h"
#include "test/placement/problems.h"

namespace gpuc::placement {
namespace {

constexpr int64_t kUnit = 64 << 10;

/// A large buffer, and one of half its size behind it.
const Problem kTwo{{buffer("large", 0, 1, 4 * kUnit), buffer("small", 1, 2, 2 * kUnit)}, {}, {}};

TEST(Halves, CountsWhatChangesHandsInBothDirections) {
  // The second half of the small one lies in the first half of the large one; the next step changes that
  // back.
  EXPECT_EQ(bytesOfOtherHalf(kTwo, {{0, 0}, 4 * kUnit}), 2 * kUnit);
  EXPECT_EQ(bytesOfOtherHalf(kTwo, {{0, kUnit}, 4 * kUnit}), 0);
}

TEST(Halves, CountsTheBufferBeforeAlone) {
  Problem problem = kTwo;
  problem.buffers.push_back(buffer("between", 1, 2, 4 * kUnit));
  problem.buffers[1] = buffer("small", 2, 3, 2 * kUnit);
  // The small one comes behind the one between; the large one meets it, too, and at both ends the one
  // between.
  EXPECT_EQ(bytesOfOtherHalf(problem, {{0, kUnit, 0}, 4 * kUnit}), 0);
  EXPECT_EQ(bytesOfOtherHalf(problem, {{0, 0, 0}, 4 * kUnit}), 2 * kUnit);
}

TEST(Halves, CountsNothingOfBuffersAtOnceOrSmallOnes) {
  const Problem at_once{{buffer("a", 0, 2, 4 * kUnit), buffer("b", 1, 2, 2 * kUnit)}, {}, {}};
  EXPECT_EQ(bytesOfOtherHalf(at_once, {{0, 4 * kUnit}, 6 * kUnit}), 0);
  const Problem small{{buffer("a", 0, 1, kUnit - 1), buffer("b", 1, 2, kUnit / 2)}, {}, {}};
  EXPECT_EQ(bytesOfOtherHalf(small, {{0, 0}, kUnit - 1}), 0);
  EXPECT_EQ(bytesOfOtherHalf({}, {}), 0);
}

TEST(Halves, MiddlesMeet) {
  Solution solution{{0, 0}, 4 * kUnit};
  matchHalves(kTwo, solution);
  EXPECT_EQ(solution.offsets, (std::vector<int64_t>{0, kUnit}));
  EXPECT_EQ(solution.height, 4 * kUnit);
}

TEST(Halves, WhatIsInTheWayStays) {
  Problem problem = kTwo;
  problem.buffers.push_back(buffer("kept", 1, 2, kUnit));
  Solution solution{{0, 0, 2 * kUnit}, 4 * kUnit};
  matchHalves(problem, solution);
  EXPECT_EQ(solution.offsets, (std::vector<int64_t>{0, 0, 2 * kUnit}));
  // Likewise what is in conflict though its times do not say so.
  problem.buffers[2] = buffer("kept", 5, 6, kUnit);
  problem.conflicts = {{2, 1}};
  matchHalves(problem, solution);
  EXPECT_TRUE(validate(problem, solution).ok());
  EXPECT_EQ(solution.offsets[1], 0);
}

TEST(Halves, RandomProblemsStayValidAndGrowNoHigher) {
  int64_t before = 0, after = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Problem problem = randomProblem(seed, {.buffers = 60, .times = 40, .max_size = 64 * kUnit});
    Result<Solution> solved = solve(problem, {.greedies_alone = true});
    ASSERT_TRUE(solved.ok());
    Solution moved = *solved;
    matchHalves(problem, moved);
    ASSERT_TRUE(validate(problem, moved).ok()) << seed << ": " << validate(problem, moved).message();
    EXPECT_LE(moved.height, solved->height) << seed;
    EXPECT_LE(bytesOfOtherHalf(problem, moved), bytesOfOtherHalf(problem, *solved)) << seed;
    before += bytesOfOtherHalf(problem, *solved), after += bytesOfOtherHalf(problem, moved);
    Solution again = *solved;
    matchHalves(problem, again);
    EXPECT_EQ(again.offsets, moved.offsets) << seed;
  }
  EXPECT_LT(after, before * 9 / 10);
}

}  // namespace
}  // namespace gpuc::placement
