// The simulator against closed forms, and on random schedules against the definition.
#include <gtest/gtest.h>

#include <random>

#include "passes/simulate/Simulator.h"
#include "passes/simulate/StepTimes.h"
#include "test/simulate/naive.h"

namespace gpuc {
namespace {

using Kind = Schedule::Kind;
using Command = Schedule::Command;

Command work(double nanoseconds) { return {.kind = Kind::work, .nanoseconds = nanoseconds}; }
Command exchange(int64_t bytes) { return {.kind = Kind::exchange, .nanoseconds = 7, .bytes = bytes}; }
Command record(unsigned event) { return {.kind = Kind::record, .event = event}; }
Command wait(unsigned event, int64_t distance = 0, int64_t ordinal = 0) {
  return {.kind = Kind::wait, .event = event, .distance = distance, .ordinal = ordinal};
}

Schedule scheduleOf(std::vector<std::vector<Command>> streams, unsigned events = 0) {
  Schedule schedule;
  for (std::vector<Command> &commands : streams)
    schedule.streams.push_back({"s" + std::to_string(schedule.streams.size()), std::move(commands)});
  schedule.events = events;
  return schedule;
}

/// An exchange takes 10 ns and one for each byte.
World worldOf(int64_t ranks, Disturbance disturbance = {}) {
  return {ranks, [](int64_t bytes) { return 10.0 + static_cast<double>(bytes); }, disturbance};
}

double meanOf(const Schedule &schedule, const World &world, int64_t steps = 8) {
  Result<double> mean = meanStep(schedule, world, steps);
  EXPECT_TRUE(mean.ok()) << mean.message();
  return mean.ok() ? *mean : 0;
}

/// backward · exchange · backward, the exchange on a stream of its own, and an update behind both.
Schedule overlapped(double before, int64_t bytes, double beside, double update) {
  return scheduleOf(
      {{work(before), record(0), work(beside), wait(1), work(update)}, {wait(0), exchange(bytes), record(1)}},
      2);
}

TEST(Simulate, WithoutExchangesAStepIsTheSumOfItsCommands) {
  Schedule schedule = scheduleOf({{work(3), work(4), work(5)}});
  EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(1)), 12);
  EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(4096)), 12);
  schedule.stepNanoseconds = 2;
  EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(1)), 14);
}

TEST(Simulate, AnExchangeAtTheEndIsAdded) {
  const Schedule schedule = scheduleOf({{work(100), exchange(20)}});
  EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(2)), 100 + 30);
  EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(1)), 100 + 7); // with nobody
  const StepTimes times = *stepTimes(schedule, worldOf(2), 4);
  EXPECT_DOUBLE_EQ(times.compute, 100);
  EXPECT_DOUBLE_EQ(times.exposed, 30);
  EXPECT_DOUBLE_EQ(times.waiting, 0);
  EXPECT_DOUBLE_EQ(times.efficiency(), 100.0 / 130);
}

TEST(Simulate, AnExchangeBesideWorkIsHidden) {
  EXPECT_DOUBLE_EQ(meanOf(overlapped(10, 40, 60, 5), worldOf(2)), 10 + 60 + 5);  // 50 beside 60
  EXPECT_DOUBLE_EQ(meanOf(overlapped(10, 90, 60, 5), worldOf(2)), 10 + 100 + 5); // 100 beside 60
  EXPECT_DOUBLE_EQ(stepTimes(overlapped(10, 90, 60, 5), worldOf(2), 4)->exposed, 40);
}

/// Who comes late does not wait for that.
TEST(Simulate, WhatIsRecordedIsSeenLater) {
  Schedule schedule = overlapped(10, 90, 60, 5);
  schedule.handoffNanoseconds = 3;
  EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(2)), 10 + 3 + 100 + 3 + 5);
  schedule = overlapped(10, 40, 60, 5);
  schedule.handoffNanoseconds = 3;
  EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(2)), 10 + 60 + 5);
}

/// A rank's cores copy what it exchanges: beside the exchange, while there is something to compute.
TEST(Simulate, CopiesTakeTimeFromWhatComputes) {
  World world = worldOf(2);
  world.copyNanosecondsPerByte = 0.5;
  EXPECT_DOUBLE_EQ(meanOf(overlapped(10, 40, 60, 5), world), 10 + 20 + 60 + 5); // 50 beside 80
  EXPECT_DOUBLE_EQ(meanOf(overlapped(10, 90, 30, 5), world), 10 + 100 + 5);     // 100 beside 75
  EXPECT_DOUBLE_EQ(stepTimes(overlapped(10, 40, 60, 5), world, 4)->exposed, 20);
  EXPECT_DOUBLE_EQ(meanOf(scheduleOf({{work(100), exchange(20)}}), world), 100 + 30) << "in turn";
  world.ranks = 1;
  EXPECT_DOUBLE_EQ(meanOf(overlapped(10, 40, 60, 5), world), 10 + 60 + 5) << "with nobody";
}

TEST(Simulate, ARankIsWaitedFor) {
  const Schedule schedule = scheduleOf({{work(100), exchange(20)}});
  for (int64_t ranks : {2, 8, 4096}) {
    const StepTimes times = *stepTimes(schedule, worldOf(ranks, {.stragglers = 1, .slowdown = 1.5}), 4);
    EXPECT_DOUBLE_EQ(times.step, 150 + 30);
    EXPECT_DOUBLE_EQ(times.exposed, 30);
    EXPECT_DOUBLE_EQ(times.waiting, 50);
  }
  EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(4, {.stragglers = 4, .slowdown = 2})), 200 + 30);
}

TEST(Simulate, JitterCostsTheExpectationOfTheMaximum) {
  const Schedule schedule = scheduleOf({{work(1000), exchange(0)}});
  constexpr double kJitter = 0.1;
  double harmonic = 0;
  for (int64_t ranks = 1; ranks <= 4096; ++ranks) {
    harmonic += 1 / static_cast<double>(ranks); // of as many exponentials the mean of the maximum
    if (ranks != 1 && ranks != 2 && ranks != 64 && ranks != 4096)
      continue;
    const int64_t steps = ranks == 4096 ? 400 : 4000;
    const double mean = meanOf(schedule, worldOf(ranks, {.computeJitter = kJitter}), steps);
    // The maximum's standard deviation is below 1.29: of the mean of 400 it is 0.065.
    EXPECT_NEAR((mean - (ranks == 1 ? 7 : 10) - 1000) / 1000 / kJitter, harmonic, ranks == 4096 ? 0.2 : 0.07)
        << ranks;
  }
}

TEST(Simulate, LinksJitter) {
  const Schedule schedule = scheduleOf({{exchange(990), exchange(990)}});
  EXPECT_NEAR(meanOf(schedule, worldOf(2, {.linkJitter = 0.5}), 4000), 2000 * 1.5, 40);
}

TEST(Simulate, TheSeedDecides) {
  const Schedule schedule = scheduleOf({{work(100), exchange(20)}});
  const auto with = [&](uint64_t seed) {
    return meanOf(schedule, worldOf(16, {.computeJitter = 0.1, .linkJitter = 0.1, .seed = seed}));
  };
  EXPECT_EQ(with(1), with(1));
  EXPECT_NE(with(1), with(2));
}

/// Two slots: an upload waits until the step before the last has read its slot.
TEST(Simulate, StreamsRunAheadAsFarAsEventsLetThem) {
  for (auto [upload, compute] : {std::pair{3.0, 10.0}, {10.0, 3.0}}) {
    Schedule schedule =
        scheduleOf({{wait(0), work(compute), record(1)}, {wait(1, 2), work(upload), record(0)}}, 2);
    EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(1)), 10);
    schedule.joins = true;
    EXPECT_DOUBLE_EQ(meanOf(schedule, worldOf(1)), 13);
  }
}

TEST(Simulate, WhoWaitsForEverIsNamed) {
  const Schedule crossed = scheduleOf({{wait(0), record(1)}, {wait(1), record(0)}}, 2);
  EXPECT_EQ(meanStep(crossed, worldOf(1), 1).message(), "stream 's0' waits for ever, at its command 0");
  const Schedule unrecorded = scheduleOf({{work(1), wait(0)}}, 1);
  EXPECT_EQ(meanStep(unrecorded, worldOf(1), 1).message(), "stream 's0' waits for ever, at its command 1");
}

TEST(Simulate, WhatIsInTheWay) {
  const Schedule schedule = scheduleOf({{work(100), exchange(20)}});
  const World world = worldOf(8, {.computeJitter = 0.01, .stragglers = 1, .slowdown = 2});
  std::vector<Relief> reliefs = calmed(world);
  World atOnce = world;
  atOnce.exchangeNanoseconds = [](int64_t) { return 0.0; };
  reliefs.push_back({"links", atOnce});
  const std::vector<Limit> limits = *limitsOf(schedule, reliefs, 32);
  ASSERT_EQ(limits.size(), 3u);
  EXPECT_EQ(limits[0].name, "stragglers");
  EXPECT_EQ(limits[1].name, "links");
  EXPECT_EQ(limits[2].name, "jitter of ranks");
  EXPECT_DOUBLE_EQ(limits[2].step, 230);
}

TEST(Simulate, Worlds) {
  EXPECT_TRUE(check(worldOf(4096)).ok());
  EXPECT_EQ(check(worldOf(0)).message(), "0 ranks: from 1 to 4096 can be simulated");
  EXPECT_EQ(check(worldOf(4097)).message(), "4097 ranks: from 1 to 4096 can be simulated");
  EXPECT_EQ(check(worldOf(2, {.stragglers = 3, .slowdown = 2})).message(),
            "3 stragglers among 2 ranks: name at most as many");
}

/// What is told of a rank follows one another, and ends with the step.
TEST(Simulate, WhatIsObserved) {
  const Schedule schedule = overlapped(10, 90, 60, 5);
  Simulator simulator(schedule, worldOf(4, {.stragglers = 1, .slowdown = 2}));
  std::vector<Executed> seen;
  simulator.observe({0, 3}, [&](const Executed &executed) { seen.push_back(executed); });
  ASSERT_TRUE(simulator.step().ok());
  ASSERT_EQ(seen.size(), 2 * 8u);
  double exchanged = 0, last = 0;
  for (const Executed &executed : seen) {
    last = std::max(last, executed.end);
    if (executed.command->kind != Kind::exchange)
      continue;
    EXPECT_DOUBLE_EQ(executed.begin, executed.rank == 0 ? 10 : 20); // from when it has come itself
    EXPECT_DOUBLE_EQ(executed.end, 20 + 100);
    ++exchanged;
  }
  EXPECT_EQ(exchanged, 2);
  EXPECT_DOUBLE_EQ(last, simulator.now());
  EXPECT_DOUBLE_EQ(last, 20 + 2 * 60 + 2 * 5); // it goes on beside the exchange
}

//===----------------------------------------------------------------------===//
// Against the definition
//===----------------------------------------------------------------------===//

class Random {
public:
  explicit Random(unsigned seed) : bits_(seed) {}
  int64_t below(int64_t bound) { return static_cast<int64_t>(bits_() % static_cast<uint64_t>(bound)); }

private:
  std::mt19937 bits_;
};

/// Streams with commands in an order that can be run: each command is put on one of them, and a wait behind
/// the record that it waits for; one over a distance may stand anywhere.
Schedule randomSchedule(Random &random) {
  std::vector<std::vector<Command>> streams(static_cast<size_t>(1 + random.below(4)));
  auto any = [&]() -> std::vector<Command> & {
    return streams[static_cast<size_t>(random.below(static_cast<int64_t>(streams.size())))];
  };
  std::vector<int64_t> executions; // of each event in a step
  for (int64_t count = 1 + random.below(20); count > 0; --count) {
    const int64_t what = random.below(4);
    if (what == 0) {
      any().push_back(work(static_cast<double>(random.below(50))));
    } else if (what == 1) {
      streams.back().push_back(exchange(random.below(100)));
    } else if (what == 2) { // a loop of records, and one of waits
      const auto event = static_cast<unsigned>(executions.size());
      executions.push_back(1 + random.below(3));
      std::vector<Command> &from = any(), &to = any();
      for (int64_t i = 0; i < executions.back(); ++i) {
        from.push_back(work(static_cast<double>(random.below(20))));
        from.push_back(record(event));
      }
      for (int64_t i = 0; i < executions.back(); ++i)
        to.push_back(wait(event, random.below(3) == 0 ? random.below(4) : 0, i));
    } else if (!executions.empty()) { // of an event that is recorded already
      const int64_t event = random.below(static_cast<int64_t>(executions.size()));
      if (executions[static_cast<size_t>(event)] == 1)
        any().push_back(wait(static_cast<unsigned>(event), random.below(3)));
    }
  }
  Schedule schedule = scheduleOf(std::move(streams), static_cast<unsigned>(executions.size()));
  schedule.joins = random.below(2) == 0;
  schedule.stepNanoseconds = static_cast<double>(random.below(3));
  schedule.handoffNanoseconds = static_cast<double>(random.below(2) * 5);
  return schedule;
}

TEST(Simulate, RandomSchedulesAreAsTheDefinitionSays) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const Schedule schedule = randomSchedule(random);
    World world = worldOf(1 + random.below(5));
    world.disturbance.stragglers = random.below(world.ranks + 1);
    world.disturbance.slowdown = 1 + static_cast<double>(random.below(4));
    world.copyNanosecondsPerByte = static_cast<double>(random.below(3)) / 4;
    // So little jitter gives each rank a clock of its own, and changes nothing.
    if (random.below(2) == 0)
      world.disturbance.computeJitter = 1e-15;
    Simulator simulator(schedule, world);
    for (int64_t steps = 1; steps <= 5; ++steps) {
      ASSERT_TRUE(simulator.step().ok()) << seed;
      const double end = naiveEnd(schedule, world, steps);
      ASSERT_NEAR(simulator.now(), end, 1e-9 * (1 + end)) << seed;
    }
  }
}

} // namespace
} // namespace gpuc
