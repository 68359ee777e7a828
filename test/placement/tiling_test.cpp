// Memory without any slack: a rectangle of time × memory cut into 100 to 400 buffers. What is asserted is
// counted effort, so that it does not depend on the machine.
#include <gtest/gtest.h>

#include <cstdlib>

#include "passes/placement/Solver.h"
#include "passes/placement/Validator.h"
#include "test/placement/problems.h"

namespace gpuc::placement {
namespace {

/// Of 20 tilings, how many are put together again.
int solvedTilings(TilingShape shape, int64_t effort) {
  int solved = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    shape.buffers = 100 + std::mt19937_64(seed)() % 301;
    Problem problem = tiling(seed, shape);
    Result<Solution> solution = solve(problem, {.effort = effort});
    EXPECT_TRUE(solution.ok() && validate(problem, *solution).ok()) << "seed " << seed;
    if (solution->height == shape.bytes) ++solved;
  }
  return solved;
}

constexpr int64_t kCompilersEffort = 1'000'000'000;
constexpr int64_t kToolsEffort = 8'000'000'000;

TEST(Tilings, AreSolvedWithTheCompilersEffort) {
  EXPECT_GE(solvedTilings({.times = 1000, .bytes = 1000}, kCompilersEffort), 19);
  EXPECT_EQ(solvedTilings({.times = 1000, .bytes = 1 << 20, .balanced = true}, kCompilersEffort), 20);
  EXPECT_EQ(solvedTilings({.times = 200, .bytes = 4096, .balanced = true}, kCompilersEffort), 20);
}

TEST(Tilings, FineOnesAreMostlySolvedWithTheToolsEffort) {
  if (!std::getenv("GPUC_FINE_TILINGS")) GTEST_SKIP() << "takes a minute; placement_tilings_long runs it";
  // Few times and sizes, so that much fits by chance where it does not belong.
  EXPECT_GE(solvedTilings({.times = 100, .bytes = 1024, .balanced = true}, kToolsEffort), 15);
}

/// Of 20 fine tilings, how many end no higher than a twentieth above the bound.
int nearlySolvedTilings(int64_t effort, bool says_what_is_enough) {
  int near = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TilingShape shape{.buffers = 300, .times = 100, .bytes = 1024, .balanced = true};
    const int64_t enough = shape.bytes + shape.bytes / 20;
    Problem problem = tiling(seed, shape);
    Result<Solution> solution =
        solve(problem, {.effort = effort, .enough = says_what_is_enough ? enough : 0});
    EXPECT_TRUE(solution.ok() && validate(problem, *solution).ok()) << "seed " << seed;
    if (solution->height <= enough) ++near;
  }
  return near;
}

TEST(Tilings, WhatIsEnoughIsFoundBeforeABoundOutOfReachTakesAllEffort) {
  const int64_t effort = 100'000'000;
  const int without = nearlySolvedTilings(effort, false), with = nearlySolvedTilings(effort, true);
  EXPECT_GE(with, 15);
  EXPECT_LT(without, with);
}

}  // namespace
}  // namespace gpuc::placement
