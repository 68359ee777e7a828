// The solver as the compiler calls it: valid always, at the bound where it should be, the same every time.
#include "passes/placement/Solver.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "passes/placement/Fit.h"
#include "passes/placement/Orders.h"
#include "passes/placement/Validator.h"
#include "test/placement/problems.h"

namespace gpuc::placement {
namespace {

double cpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(Solver, EmptyProblemHasHeightZero) {
  Result<Solution> solution = solve({});
  ASSERT_TRUE(solution.ok()) << solution.message();
  EXPECT_EQ(solution->height, 0);
  EXPECT_TRUE(solution->offsets.empty());
}

TEST(Solver, BuffersOfSizeZeroNeedNoRoom) {
  Problem problem{{buffer("a", 0, 2, 0, 64), buffer("b", 0, 2, 0)}, {{0, 1}}, 0};
  Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution.ok()) << solution.message();
  EXPECT_EQ(solution->height, 0);
  EXPECT_TRUE(validate(problem, *solution).ok());
}

TEST(Solver, TouchingIntervalsShareMemoryUnlessListed) {
  Problem problem{{buffer("a", 0, 2, 10), buffer("b", 2, 4, 10)}, {}, {}};
  EXPECT_EQ(solve(problem)->height, 10);
  problem.conflicts = {{0, 1}};
  EXPECT_EQ(solve(problem)->height, 20);
}

TEST(Solver, SizesUpToTheEndOfInt64) {
  Problem problem{{buffer("a", 0, 1, INT64_MAX - 10), buffer("b", 0, 1, 10)}, {}, {}};
  Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution.ok()) << solution.message();
  EXPECT_EQ(solution->height, INT64_MAX);
  EXPECT_TRUE(validate(problem, *solution).ok());
}

TEST(Orders, TheLastOneHasWhatIsFreedFirstBelow) {
  // At the peak all but d are live. Of a and b, which end first, d's room is made: they lie side by side.
  Problem problem{{buffer("outlives", 0, 8, 3), buffer("a", 1, 4, 3), buffer("between", 2, 8, 2),
                   buffer("b", 3, 5, 2), buffer("d", 5, 7, 4)},
                  {},
                  {}};
  Instance instance(problem);
  Budget budget(INT64_MAX, std::nullopt);
  const Order order = orderOf(instance, kOrders - 1, budget);
  const Placement placement = placeInOrder(instance, order, FitRule::kFirst, INT64_MAX, budget);
  EXPECT_EQ(placement.height, 10);
  EXPECT_EQ(instance.toSolution(placement.offsets).offsets, (std::vector<int64_t>{5, 0, 8, 3, 0}));
}

TEST(Solver, MalformedProblemIsAnError) {
  EXPECT_EQ(solve({{buffer("a", 0, 1, -1)}, {}, {}}).message(), "buffer 'a': the size -1 is negative");
}

TEST(Solver, WhatDoesNotFitIsExplained) {
  Problem problem{{buffer("a", 0, 3, 10), buffer("b", 2, 5, 20), buffer("c", 4, 6, 5)}, {}, 29};
  EXPECT_EQ(solve(problem).message(),
            "the buffers do not fit: height 30 reached, capacity 29, lower bound 30; alive at the peak (time "
            "2): b (20), "
            "a (10)");
  problem.capacity = 30;
  EXPECT_TRUE(solve(problem).ok());
}

TEST(Solver, RandomProblemsAreValidAndNearTheBound) {
  double sum = 0, worst = 1;
  size_t counted = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Problem problem =
        randomProblem(seed, {.buffers = 60, .alignments = seed % 3 == 0, .conflicts = seed % 2 * 10});
    Result<Solution> solution = solve(problem, {.effort = 1'000'000});
    ASSERT_TRUE(solution.ok()) << "seed " << seed << ": " << solution.message();
    ASSERT_TRUE(isValid(problem, *solution)) << "seed " << seed;
    ASSERT_TRUE(validate(problem, *solution).ok())
        << "seed " << seed << ": " << validate(problem, *solution).message();
    // Extra conflicts may make the bound unreachable.
    if (lowerBound(problem) == 0 || !problem.conflicts.empty()) continue;
    double ratio = static_cast<double>(solution->height) / static_cast<double>(lowerBound(problem));
    sum += ratio;
    worst = std::max(worst, ratio);
    ++counted;
  }
  EXPECT_LT(sum / static_cast<double>(counted), 1.001);
  EXPECT_LT(worst, 1.03);
  RecordProperty("mean", std::to_string(sum / static_cast<double>(counted)));
  RecordProperty("worst", std::to_string(worst));
}

TEST(Solver, TinyProblemsAreSolvedToTheOptimum) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Problem problem = randomProblem(
        seed, {.buffers = 6, .times = 6, .max_size = 12, .alignments = seed % 2 == 0, .conflicts = 2});
    Result<Solution> solution = solve(problem, {.effort = 10'000'000});
    ASSERT_TRUE(solution.ok()) << "seed " << seed << ": " << solution.message();
    ASSERT_TRUE(isValid(problem, *solution)) << "seed " << seed;
    ASSERT_EQ(solution->height, bruteForceHeight(problem)) << "seed " << seed;
  }
}

TEST(Solver, TrainingStepsReachTheBoundWithLittleEffort) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Problem problem = trainingStep(/*layers=*/250, seed);  // 1,000 buffers
    // About 100 ms, counted as work so that the test does not depend on the machine.
    Result<Solution> solution = solve(problem, {.effort = 100'000'000});
    ASSERT_TRUE(solution.ok()) << solution.message();
    EXPECT_TRUE(validate(problem, *solution).ok());
    EXPECT_EQ(solution->height, lowerBound(problem)) << "seed " << seed;
  }
}

TEST(Solver, SameProblemAndSeedGiveTheSameOffsets) {
  for (uint64_t seed : {1, 2, 3}) {
    Problem problem = randomProblem(seed, {.buffers = 120, .conflicts = 40});
    Result<Solution> first = solve(problem, {.effort = 3'000'000});
    Result<Solution> second = solve(problem, {.effort = 3'000'000});
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->offsets, second->offsets);
  }
}

TEST(Solver, TimeLimitEndsTheSearch) {
  Problem problem = trainingStep(50, 1);
  // In conflict with all others, so that the bound cannot be reached and the search would go on.
  problem.buffers.push_back(buffer("apart", 1000, 1001, 4096));
  for (size_t i = 0; i + 1 < problem.buffers.size(); ++i)
    problem.conflicts.emplace_back(i, problem.buffers.size() - 1);
  double start = cpuSeconds();
  Result<Solution> solution = solve(problem, {.effort = INT64_MAX / 2, .time_limit_s = 0.2});
  ASSERT_TRUE(solution.ok()) << solution.message();
  EXPECT_TRUE(validate(problem, *solution).ok());
  EXPECT_LT(cpuSeconds() - start, 5);  // without the limit it would not end in our lifetime
}

/// Twelve buffers' worth of conflicts for each of very many: one greedy looks at 1.25 billion pairs of these.
Problem manyBuffers(size_t count) {
  Problem problem;
  for (size_t i = 0; i < count; ++i) {
    int64_t lower = static_cast<int64_t>(i * 7919 % count);
    int64_t size = static_cast<int64_t>(i * 104729 % 1000 + 1);
    problem.buffers.push_back(
        {"b" + std::to_string(i), lower, lower + static_cast<int64_t>(i % 12 + 1), size, 1});
  }
  return problem;
}

TEST(Solver, EndsWithAValidPlacementWhateverTheTimeLimitLeaves) {
  Problem problem = manyBuffers(50'000);
  Result<Solution> solution = solve(problem, {.time_limit_s = 0.0});
  ASSERT_TRUE(solution.ok()) << solution.message();
  EXPECT_TRUE(solution->stopped_by_clock);
  EXPECT_TRUE(validate(problem, *solution).ok());
  EXPECT_LT(solution->height, 2 * lowerBound(problem));

  problem.capacity = lowerBound(problem) - 1;
  Result<Solution> none = solve(problem, {.time_limit_s = 0.0});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.message().find("reached when the time limit ended the search, capacity"), std::string::npos)
      << none.message();
}

TEST(Solver, TheClockIsNotToBlameForWhatReachesTheBound) {
  Problem problem{.buffers = {{"a", 0, 2, 10, 1}, {"b", 2, 4, 10, 1}}, .conflicts = {}, .capacity = {}};
  Result<Solution> solution = solve(problem, {.time_limit_s = 0.0});
  ASSERT_TRUE(solution.ok()) << solution.message();
  EXPECT_EQ(solution->height, 10);
  EXPECT_FALSE(solution->stopped_by_clock);
}

TEST(Solver, OnePassOverTimeHoldsToAlignmentsAndConflictPairs) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    Problem problem;
    size_t count = 1 + random() % 30;
    for (size_t i = 0; i < count; ++i) {
      int64_t lower = static_cast<int64_t>(random() % 20);
      problem.buffers.push_back({"b" + std::to_string(i), lower,
                                 lower + 1 + static_cast<int64_t>(random() % 8),
                                 static_cast<int64_t>(random() % 100), int64_t{1} << (random() % 5)});
    }
    for (size_t pair = random() % 5; pair > 0; --pair)
      if (size_t a = random() % count, b = random() % count; a != b) problem.conflicts.emplace_back(a, b);
    Instance instance(problem);
    Solution solution = instance.toSolution(placeInTime(instance).offsets);
    EXPECT_TRUE(validate(problem, solution).ok()) << validate(problem, solution).message();
  }
}

}  // namespace
}  // namespace gpuc::placement
