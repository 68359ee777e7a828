// The search over the skyline: it finds a placement exactly when brute force says that there is one.
#include "passes/placement/Skyline.h"

#include <gtest/gtest.h>

#include "passes/placement/Validator.h"
#include "test/placement/problems.h"

namespace gpuc::placement {
namespace {

constexpr size_t kStates = 1 << 12;

/// A solution no higher than `capacity`; nothing where the search proves that there is none.
std::optional<Solution> searchFor(const Problem& problem, int64_t capacity, uint64_t variant) {
  Instance instance(problem);
  Budget budget(1'000'000'000, std::nullopt);
  SkylineSearch search(instance, capacity, kStates, budget);
  Outcome outcome = search.run(variant, INT64_MAX);
  EXPECT_NE(outcome, Outcome::kStopped);
  if (outcome != Outcome::kFound) return std::nullopt;
  return instance.toSolution(search.offsets());
}

TEST(Skyline, FindsTheOptimumAndNothingBelowIt) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Problem problem = randomProblem(
        seed, {.buffers = 7, .times = 7, .max_size = 12, .alignments = seed % 3 == 0, .conflicts = 0});
    int64_t optimum = bruteForceHeight(problem);
    std::optional<Solution> found = searchFor(problem, optimum, seed % 7);
    ASSERT_TRUE(found) << "seed " << seed;
    ASSERT_TRUE(validate(problem, *found).ok())
        << "seed " << seed << ": " << validate(problem, *found).message();
    ASSERT_EQ(found->height, optimum) << "seed " << seed;
    if (optimum > 0) {
      ASSERT_FALSE(searchFor(problem, optimum - 1, seed % 7)) << "seed " << seed;
    }
  }
}

TEST(Skyline, EndsWithItsLimitAndGoesOn) {
  Problem problem = tiling(1, {.buffers = 60, .times = 1000, .bytes = 1000});
  Instance instance(problem);
  Budget budget(1'000'000'000, std::nullopt);
  SkylineSearch search(instance, 1000, kStates, budget);
  EXPECT_EQ(search.run(0, 1000), Outcome::kStopped);
  ASSERT_EQ(search.run(0, INT64_MAX), Outcome::kFound);
  EXPECT_TRUE(isValid(problem, instance.toSolution(search.offsets())));

  Budget none(10, std::nullopt);
  EXPECT_EQ(SkylineSearch(instance, 1000, kStates, none).run(0, INT64_MAX), Outcome::kStopped);
}

}  // namespace
}  // namespace gpuc::placement
