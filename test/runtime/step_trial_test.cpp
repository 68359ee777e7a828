// Which way of running a step is taken, by the times that they take.
#include "runtime/host/step_trial.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuc {
namespace {

constexpr int64_t kUs = 1000, kSecond = 1'000'000'000;

/// Runs steps of so many ns by each way, for as long as given, and counts how many were by each.
std::vector<int64_t> run(StepTrial& trial, const std::vector<int64_t>& ns, int64_t how_long) {
  std::vector<int64_t> steps(ns.size());
  for (int64_t passed = 0; passed < how_long;) {
    const int64_t took = ns[trial.way()];
    ++steps[trial.way()];
    passed += took;
    trial.endStep(trial.isTiming() ? took : 0);
  }
  return steps;
}

TEST(StepTrial, TakesTheQuickestWay) {
  StepTrial trial(3);
  EXPECT_EQ(trial.way(), 0U);
  const std::vector<int64_t> steps = run(trial, {50 * kUs, 30 * kUs, 40 * kUs}, kSecond);
  EXPECT_EQ(trial.way(), 1U);
  EXPECT_LT(steps[0] + steps[2], steps[1] / 100);
}

TEST(StepTrial, FindsAnotherWayWhenThatIsQuicker) {
  StepTrial trial(3);
  run(trial, {50 * kUs, 30 * kUs, 40 * kUs}, kSecond);
  run(trial, {50 * kUs, 60 * kUs, 40 * kUs}, 5 * kSecond);
  EXPECT_EQ(trial.way(), 2U);
}

TEST(StepTrial, KeepsToItsWayForLittle) {
  StepTrial trial(2);
  run(trial, {100 * kUs, 98 * kUs}, kSecond);
  EXPECT_EQ(trial.way(), 0U);
}

TEST(StepTrial, FirstStepsDoNotCount) {
  StepTrial trial(2);
  for (int step = 0; step < 19; ++step) {
    EXPECT_FALSE(trial.isTiming());
    trial.endStep(0);
  }
  trial.endStep(0);
  EXPECT_TRUE(trial.isTiming());
}

TEST(StepTrial, OfLongStepsNoOtherWayIsTried) {
  StepTrial trial(2);
  const std::vector<int64_t> steps = run(trial, {5'000 * kUs, 10 * kUs}, 2 * kSecond);
  EXPECT_EQ(steps[1], 0);
  EXPECT_FALSE(trial.isTiming());
}

TEST(StepTrial, OneWayIsNotTimed) {
  StepTrial trial(1);
  for (int step = 0; step < 100; ++step) {
    EXPECT_FALSE(trial.isTiming());
    EXPECT_FALSE(trial.endStep(0));
  }
}

}  // namespace
}  // namespace gpuc
