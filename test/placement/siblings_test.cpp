// Joining items: what is joined and what is not, and that any placement of what is left is one of the items.
#include "passes/placement/Siblings.h"

#include <gtest/gtest.h>

#include "passes/placement/Fit.h"
#include "test/placement/problems.h"

namespace gpuc::placement {
namespace {

/// The fewest items that are left under any of some seeds; with each, checks a placement of what is left.
size_t fewestLeft(const Problem& problem) {
  Instance instance(problem);
  size_t fewest = problem.buffers.size();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Budget budget(1'000'000'000, std::nullopt);
    Siblings siblings = joinSiblings(instance, seed, budget);
    EXPECT_EQ(siblings.problem.buffers.size() + siblings.joined.size(), problem.buffers.size());
    fewest = std::min(fewest, siblings.problem.buffers.size());
    Instance joined(siblings.problem);
    Solution left = joined.toSolution(placeInTime(joined).offsets);
    Solution solution = instance.toSolution(siblings.toItems(left.offsets));
    EXPECT_TRUE(isValid(problem, solution)) << "seed " << seed;
    EXPECT_EQ(solution.height, left.height) << "seed " << seed;
  }
  return fewest;
}

TEST(Siblings, NeighboursInTimeOfOneSizeAreJoined) {
  EXPECT_EQ(fewestLeft({{buffer("a", 0, 2, 10), buffer("b", 2, 5, 10)}, {}, {}}), 1u);
}

TEST(Siblings, OtherSizesOrTimesAreNot) {
  EXPECT_EQ(fewestLeft({{buffer("a", 0, 2, 10), buffer("b", 2, 5, 11)}, {}, {}}), 2u);
  EXPECT_EQ(fewestLeft({{buffer("a", 0, 3, 10), buffer("b", 2, 5, 10)}, {}, {}}), 2u);
}

TEST(Siblings, OneLifetimeIsJoinedWhereItMakesTheSizeOfANeighbour) {
  // a and b are together of c's size: all three become one. Without c nothing says that a lies upon b.
  EXPECT_EQ(fewestLeft({{buffer("a", 0, 2, 4), buffer("b", 0, 2, 6), buffer("c", 2, 3, 10)}, {}, {}}), 1u);
  EXPECT_EQ(fewestLeft({{buffer("c", 0, 1, 10), buffer("a", 1, 2, 4), buffer("b", 1, 2, 6)}, {}, {}}), 1u);
  EXPECT_EQ(fewestLeft({{buffer("a", 0, 2, 4), buffer("b", 0, 2, 6), buffer("c", 2, 3, 11)}, {}, {}}), 3u);
}

TEST(Siblings, AnotherAlignmentIsNotJoined) {
  EXPECT_EQ(fewestLeft({{buffer("a", 0, 2, 8, 8), buffer("b", 2, 5, 8, 4)}, {}, {}}), 2u);
  EXPECT_EQ(fewestLeft({{buffer("a", 0, 2, 8, 8), buffer("b", 2, 5, 8, 8)}, {}, {}}), 1u);
}

TEST(Siblings, ATilingBecomesFew) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_LT(fewestLeft(tiling(seed, {.buffers = 200, .times = 10'000, .bytes = 1'000'000})), 170u) << seed;
}

TEST(Siblings, VeryManyAlikeEndWithTheBudget) {
  Problem problem;
  for (int i = 0; i < 4000; ++i)
    problem.buffers.push_back(buffer("b" + std::to_string(i), i % 2, i % 2 + 1, 8));
  Instance instance(problem);
  Budget budget(1'000'000, std::nullopt);
  Siblings siblings = joinSiblings(instance, 0, budget);
  EXPECT_TRUE(budget.exhausted());
  EXPECT_EQ(siblings.problem.buffers.size() + siblings.joined.size(), problem.buffers.size());
}

}  // namespace
}  // namespace gpuc::placement
