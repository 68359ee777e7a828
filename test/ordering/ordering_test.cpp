#include <gtest/gtest.h>

#include <numeric>

#include "passes/ordering/Cut.h"
#include "passes/ordering/Greedy.h"
#include "passes/ordering/Search.h"
#include "passes/ordering/Solver.h"
#include "passes/ordering/Walk.h"
#include "test/ordering/judge.h"
#include "test/ordering/random_problem.h"

namespace gpuc::ordering {
namespace {

constexpr Effort kPlenty = 1'000'000'000;

/// Two buffers of 100 bytes are made, then each is made 10 of: 0 1 2 3 needs 210 bytes, 0 2 1 3 only 120.
Problem twoBigOnes() {
  Writer writer;
  for (int i = 0; i < 2; ++i) writer.addCommand({}, {writer.addBuffer(100)});
  for (size_t i = 0; i < 2; ++i) {
    const size_t small = writer.addBuffer(10);
    writer.addCommand({i}, {small});
    writer.problem.buffers[small].to_end = true;
  }
  return writer.problem;
}

TEST(Ordering, CountsWhatIsLiveWhileACommandRuns) {
  const Problem problem = twoBigOnes();
  EXPECT_EQ(liveBytes(Graph(problem), {0, 1, 2, 3}), (std::vector<int64_t>{100, 200, 210, 120}));
  EXPECT_EQ(liveBytes(Graph(problem), {0, 2, 1, 3}), (std::vector<int64_t>{100, 110, 110, 120}));
  EXPECT_EQ(peakOf(problem, {0, 1, 2, 3}), 210);
}

TEST(Ordering, CountsAResultThatLiesOverItsOperandOnce) {
  Writer writer;
  const size_t a = writer.addBuffer(64), b = writer.addBuffer(64), c = writer.addBuffer(64);
  writer.addCommand({}, {a});
  writer.addCommand({a}, {b}, /*in_place=*/true);  // which a later one reads: not over a
  writer.addCommand({a}, {c}, /*in_place=*/true);
  EXPECT_EQ(liveBytes(Graph(writer.problem), {0, 1, 2}), (std::vector<int64_t>{64, 128, 64}));
  EXPECT_EQ(liveBytes(Graph(writer.problem, /*is_backward=*/true), {0, 1, 2}),
            (std::vector<int64_t>{64, 128, 64}));
}

TEST(Ordering, APartKeepsWhatIsLiveAroundIt) {
  const Problem part = partOf(twoBigOnes(), {0, 2, 1, 3}, 1, 3);
  EXPECT_EQ(liveBytes(Graph(part), {0, 1}), (std::vector<int64_t>{110, 110}));
  EXPECT_EQ(liveBytes(Graph(part), {1, 0}), (std::vector<int64_t>{200, 210}));
}

TEST(Ordering, ALeastCutIsWhatNoOrderIsBelow) {
  Effort effort = kPlenty;
  const std::optional<Cut> cut = leastCut(Graph(twoBigOnes()), 3, effort);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->bytes, 110);  // 3 could come before 0 and 2
  EXPECT_EQ(cut->before, (std::vector<char>{0, 1, 0, 0}));
}

TEST(Ordering, TheSearchFindsAnOrderOrProvesThatThereIsNone) {
  const Problem problem = twoBigOnes();
  for (bool is_backward : {false, true}) {
    const Graph graph(problem, is_backward);
    Search search(graph);
    Effort effort = kPlenty;
    const std::optional<Order> order = search.find(120, effort);
    ASSERT_TRUE(order);
    EXPECT_EQ(peakOf(problem, *order), 120);
    EXPECT_FALSE(search.find(119, effort));
    EXPECT_GT(effort, 0);
  }
  Effort little = 3;
  const Graph graph(problem);
  EXPECT_FALSE(Search(graph).find(120, little));
  EXPECT_LE(little, 0);
}

TEST(Ordering, KeepsTheGivenOrderIfNoneIsBetter) {
  Writer writer;
  for (int i = 0; i < 3; ++i) writer.addCommand({}, {writer.addBuffer(100)});
  const Solution solution = solve(writer.problem);
  EXPECT_EQ(solution.order, givenOrder(writer.problem));
  EXPECT_EQ(solution.peak, 100);
  EXPECT_EQ(solution.bound, 100);
  EXPECT_EQ(solve({}).peak, 0);
}

/// On problems of up to 26 commands; whole plans are judged in test/passes/order_judge_test.cpp.
class SmallProblems : public testing::TestWithParam<Problem (*)(uint64_t, size_t)> {};

TEST_P(SmallProblems, AreSolvedAndBoundsHold) {
  int proven = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Problem problem = GetParam()(seed, 10 + seed % 17);
    const Judge judge(problem);
    const Solution solution = solve(problem);
    ASSERT_EQ(judge.peakOf(solution.order), solution.peak) << seed;
    const int64_t better = judge.leastPeak(solution.peak), least = better < 0 ? solution.peak : better;
    EXPECT_LE(static_cast<double>(solution.peak), 1.001 * static_cast<double>(least)) << seed;
    EXPECT_LE(solution.bound, least) << seed;
    proven += solution.bound == solution.peak;
    const Graph graph(problem);
    Effort effort = kPlenty;
    for (size_t command = 0; command < graph.size(); ++command)
      EXPECT_LE(leastCut(graph, command, effort)->bytes, least) << seed << ", command " << command;
  }
  EXPECT_GE(proven, 50);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SmallProblems, testing::Values(&randomMesh, &randomFan, &randomLadder));

TEST(Ordering, LargeProblemsAreNoWorseThanTheGreediesAndEndByCountedEffort) {
  for (auto make : {&randomMesh, &randomFan, &randomLadder}) {
    const Problem problem = make(1, 3000);
    const Solution solution = solve(problem, {.effort = 300'000});
    Order sorted = solution.order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, givenOrder(problem));
    EXPECT_EQ(peakOf(problem, solution.order), solution.peak);
    EXPECT_LE(solution.bound, solution.peak);
    EXPECT_LE(solution.peak, peakOf(problem, givenOrder(problem)));
    for (Choice choice : {Choice::leaves_least, Choice::frees_most})
      EXPECT_LE(solution.peak, peakOf(problem, scheduleGreedily(Graph(problem), choice)));
    EXPECT_EQ(solve(problem, {.effort = 300'000}).order, solution.order);
  }
}

TEST(Walk, LeadsToOtherOrdersThatAreAsGood) {
  int others = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Problem problem = seed % 2 ? randomMesh(seed, 40) : randomFan(seed, 40);
    const Order given = givenOrder(problem), order = walk(problem, given, seed);
    std::vector<size_t> places(order.size());
    for (size_t place = 0; place < order.size(); ++place) places[order[place]] = place;
    for (size_t command = 0; command < order.size(); ++command)
      for (size_t before : problem.commands[command].predecessors) EXPECT_LT(places[before], places[command]);
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), given.begin()));
    EXPECT_LE(peakOf(problem, order), peakOf(problem, given));
    EXPECT_EQ(walk(problem, given, seed), order);
    others += order != given && walk(problem, given, seed + 1) != order;
  }
  EXPECT_GE(others, 45);
}

}  // namespace
}  // namespace gpuc::ordering
