// The branch and bound: it finds a placement exactly when brute force says that there is one.
#include "passes/placement/Search.h"

#include <gtest/gtest.h>

#include "passes/placement/Validator.h"
#include "test/placement/problems.h"

namespace gpuc::placement {
namespace {

/// A solution no higher than `capacity`; nothing where the search proves that there is none.
std::optional<Solution> searchFor(const Problem& problem, int64_t capacity) {
  Instance instance(problem);
  Budget budget(100'000'000, std::nullopt);
  SearchResult result = searchWithin(instance, capacity, budget);
  EXPECT_TRUE(result.complete);
  if (!result.placement) return std::nullopt;
  return instance.toSolution(result.placement->offsets);
}

TEST(Search, FindsTheOptimumAndNothingBelowIt) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Problem problem = randomProblem(
        seed, {.buffers = 6, .times = 6, .max_size = 12, .alignments = seed % 2 == 0, .conflicts = 2});
    int64_t optimum = bruteForceHeight(problem);
    std::optional<Solution> found = searchFor(problem, optimum);
    ASSERT_TRUE(found) << "seed " << seed;
    ASSERT_TRUE(validate(problem, *found).ok())
        << "seed " << seed << ": " << validate(problem, *found).message();
    ASSERT_EQ(found->height, optimum) << "seed " << seed;
    if (optimum > 0) {
      ASSERT_FALSE(searchFor(problem, optimum - 1)) << "seed " << seed;
    }
  }
}

TEST(Search, FillsMemoryWithoutSlack) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Problem problem = tiling(seed, {.buffers = 24, .times = 1000, .bytes = 1000});
    ASSERT_EQ(lowerBound(problem), 1000);
    std::optional<Solution> found = searchFor(problem, 1000);
    ASSERT_TRUE(found) << "seed " << seed;
    ASSERT_TRUE(isValid(problem, *found)) << "seed " << seed;
  }
}

TEST(Search, EndsWithTheBudget) {
  Problem problem =
      randomProblem(3, {.buffers = 200, .times = 30, .max_size = 1000, .alignments = false, .conflicts = 0});
  Instance instance(problem);
  Budget budget(10, std::nullopt);
  SearchResult result = searchWithin(instance, instance.lowerBound(), budget);
  EXPECT_FALSE(result.placement);
  EXPECT_FALSE(result.complete);
}

}  // namespace
}  // namespace gpuc::placement
