//===- buckets_test.cpp - Which sums over ranks travel together, and when ---------===//

#include "passes/collectives/ExchangeSchedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace gpuc {
namespace {

const Link kLink = {"test", /*bytesPerNanosecond=*/1, /*latencyNanoseconds=*/50};

/// When the last sum is there, if these buckets travel beside commands of a pace.
double finishOf(llvm::ArrayRef<Exchange> exchanges, llvm::ArrayRef<size_t> ends, double pace) {
  double clock = 0;
  size_t begin = 0;
  for (size_t end : ends) {
    int64_t bytes = 0;
    double ready = 0;
    for (; begin < end; ++begin) {
      EXPECT_EQ(exchanges[begin].kind, exchanges[end - 1].kind);
      bytes += exchanges[begin].bytes;
      ready = pace * exchanges[begin].ready;
    }
    clock = std::max(clock, ready) + kLink.allReduceNanoseconds(bytes);
  }
  EXPECT_EQ(begin, exchanges.size());
  return clock;
}

std::vector<Exchange> randomExchanges(std::mt19937_64 &random, size_t most) {
  std::vector<Exchange> exchanges;
  double ready = 0;
  for (size_t count = 1 + random() % most; count > 0; --count)
    exchanges.push_back({static_cast<int64_t>(1 + random() % 400),
                         ready += static_cast<double>(random() % 600),
                         static_cast<int64_t>(random() % 8 == 0)});
  return exchanges;
}

/// All ways to cut them.
template <typename Visit> void forEachCut(llvm::ArrayRef<Exchange> exchanges, Visit visit) {
  for (uint64_t cuts = 0; cuts < uint64_t{1} << (exchanges.size() - 1); ++cuts) {
    std::vector<size_t> ends;
    bool isOneKind = true;
    for (size_t next = 1; next <= exchanges.size(); ++next)
      if (next == exchanges.size() || (cuts >> (next - 1) & 1))
        ends.push_back(next);
      else
        isOneKind &= exchanges[next].kind == exchanges[next - 1].kind;
    if (isOneKind)
      visit(ends);
  }
}

TEST(Buckets, AreGoodAtAnyPace) {
  std::mt19937_64 random(1);
  double mostLost = 1;
  for (int trial = 0; trial < 300; ++trial) {
    const std::vector<Exchange> exchanges = randomExchanges(random, 9);
    std::map<double, double> least;
    const double paces[] = {0.25, 0.5, 1, 2, 4, 8};
    auto lossOf = [&](const std::vector<size_t> &ends) {
      double loss = 0;
      for (double pace : paces)
        loss += finishOf(exchanges, ends, pace) / least[pace];
      return loss;
    };
    for (double pace : paces) {
      least[pace] = std::numeric_limits<double>::infinity();
      forEachCut(exchanges, [&](const std::vector<size_t> &ends) {
        least[pace] = std::min(least[pace], finishOf(exchanges, ends, pace));
      });
    }
    double best = std::numeric_limits<double>::infinity();
    forEachCut(exchanges, [&](const std::vector<size_t> &ends) { best = std::min(best, lossOf(ends)); });
    mostLost = std::max(mostLost, lossOf(cutForOverlap(exchanges, kLink)) / best);
  }
  std::printf("at most %.3f times what the best buckets lose in the mean over paces\n", mostLost);
  EXPECT_LE(mostLost, 1.15);
}

TEST(Buckets, WhereNothingIsComputedThereIsOne) {
  EXPECT_EQ(cutForOverlap(std::vector<Exchange>{{100, 0, 0}, {100, 0, 0}, {1, 0, 0}}, kLink).size(), 1u);
  EXPECT_EQ(cutForOverlap({}, kLink), std::vector<size_t>());
}

/// Of 25 layers: behind each weight's gradient, which takes about as long to travel as to compute, comes a
/// bias.
TEST(Buckets, AreFewerWhereAnExchangeCostsMoreThanItsMessages) {
  size_t fewer = 0, many = 0;
  for (double layer = 200'000; layer < 1'600'000; layer += 50'000) {
    std::vector<Exchange> exchanges;
    for (int number = 0; number < 25; ++number) {
      exchanges.push_back({400'000, (number + 0.95) * layer, 0});
      exchanges.push_back({400, (number + 1) * layer, 0});
    }
    const auto most = std::numeric_limits<int64_t>::max();
    const std::vector<size_t> best = cutForOverlap(exchanges, kLink, most),
                              few = cutForOverlap(exchanges, kLink, most, /*worthFewer=*/0.01);
    EXPECT_LE(few.size(), best.size());
    EXPECT_LE(finishOf(exchanges, few, 1), 1.05 * finishOf(exchanges, best, 1));
    fewer += few.size();
    many += best.size();
  }
  EXPECT_LT(fewer, many);
  std::printf("%zu buckets, not %zu\n", fewer, many);
}

TEST(Buckets, BesideCommandsAreNoLargerThanIsSaid) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const std::vector<Exchange> exchanges = randomExchanges(random, 12);
    size_t begin = 0;
    for (size_t end : cutForOverlap(exchanges, kLink, /*mostBytes=*/500)) {
      int64_t bytes = 0;
      const bool isOne = end == begin + 1;
      for (; begin < end; ++begin)
        bytes += exchanges[begin].bytes;
      EXPECT_TRUE(isOne || bytes <= 500) << bytes;
    }
    EXPECT_EQ(begin, exchanges.size());
  }
}

TEST(Buckets, AreNoLargerThanIsSaid) {
  const std::vector<Exchange> exchanges = {{60, 0, 0},  {40, 0, 0}, {1, 0, 0},
                                           {500, 0, 0}, {3, 0, 1},  {3, 0, 1}};
  EXPECT_EQ(cutBySize(exchanges, 100), (std::vector<size_t>{2, 3, 4, 6}));
  EXPECT_EQ(cutBySize({}, 100), std::vector<size_t>());
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// A backward pass of `layers` commands, each of which makes a gradient, and an update for each sum.
ExchangeProblem backwardPass(size_t layers, double nanoseconds, int64_t bytes) {
  ExchangeProblem problem;
  for (size_t layer = 0; layer < layers; ++layer) {
    const size_t first = problem.commands.size();
    problem.commands.push_back(
        {nanoseconds, layer == 0 ? std::vector<size_t>() : std::vector<size_t>{first - 3}, {}});
    problem.commands.push_back({0, {first}, Exchange{bytes, 0, 0}});
    problem.commands.push_back({1, {first + 1}, {}});
  }
  return problem;
}

void expectOrder(const ExchangeProblem &problem, const ExchangeSchedule &schedule) {
  std::vector<bool> done(problem.commands.size());
  size_t count = 0;
  for (const ExchangeSchedule::Turn &turn : schedule.turns) {
    for (size_t command : turn)
      for (size_t before : problem.commands[command].predecessors)
        EXPECT_TRUE(done[before]);
    for (size_t command : turn)
      done[command] = true;
    count += turn.size();
  }
  EXPECT_EQ(count, problem.commands.size());
}

TEST(ExchangeSchedule, HidesAllButTheLastBucket) {
  const ExchangeProblem problem = backwardPass(10, /*nanoseconds=*/1000, /*bytes=*/400);
  const ExchangeSchedule beside = scheduleExchanges(problem, kLink, {.beside = true});
  const ExchangeSchedule inTurn = scheduleExchanges(problem, kLink, {.bucketBytes = 400});
  expectOrder(problem, beside);
  expectOrder(problem, inTurn);
  // Buckets that are good at any pace may be of two gradients.
  EXPECT_LE(beside.nanoseconds, 10 * 1000 + 10 + kLink.allReduceNanoseconds(2 * 400));
  EXPECT_NEAR(inTurn.nanoseconds, 10 * (1000 + 1 + kLink.allReduceNanoseconds(400)), 1);
}

TEST(ExchangeSchedule, GradientsOfWeightsComeFirstBesideAnExchange) {
  // 0: the loss; 1, 2: gradients of layers, one after another; 3, 4: those of their weights, and 5, 6 their
  // sums.
  ExchangeProblem problem;
  problem.commands = {{1000, {}, {}},
                      {1000, {0}, {}},
                      {1000, {1}, {}},
                      {1000, {0}, {}},
                      {1000, {1}, {}},
                      {0, {3}, Exchange{400, 0, 0}},
                      {0, {4}, Exchange{400, 0, 0}}};
  const std::vector<ExchangeSchedule::Turn> beside = {{0}, {3}, {5}, {1}, {2}, {4}, {6}};
  EXPECT_EQ(scheduleExchanges(problem, kLink, {.beside = true, .bucketBytes = 400}).turns, beside);
  // In turn nothing is gained by it: the order stays, in which fewer bytes are live.
  const std::vector<ExchangeSchedule::Turn> inTurn = {{0}, {1}, {2}, {3}, {5}, {4}, {6}};
  EXPECT_EQ(scheduleExchanges(problem, kLink, {.bucketBytes = 400}).turns, inTurn);
}

TEST(ExchangeSchedule, WhatIsSummedIsConsumedAtOnceInTurn) {
  const ExchangeProblem problem = backwardPass(3, 1000, 400);
  const ExchangeSchedule schedule = scheduleExchanges(problem, kLink, {.bucketBytes = 400});
  const std::vector<ExchangeSchedule::Turn> expected = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}};
  EXPECT_EQ(schedule.turns, expected);
}

TEST(ExchangeSchedule, WhatComesBetweenPartsNoBucketInTurn) {
  // 0, 1, 2: gradients; 3, 4, 5: their sums, the second of another type.
  ExchangeProblem problem;
  problem.commands = {{1000, {}, {}},
                      {1000, {0}, {}},
                      {1000, {1}, {}},
                      {0, {0}, Exchange{400, 0, 0}},
                      {0, {1}, Exchange{400, 0, 1}},
                      {0, {2}, Exchange{400, 0, 0}}};
  const std::vector<ExchangeSchedule::Turn> inTurn = {{0}, {1}, {4}, {2}, {3, 5}};
  EXPECT_EQ(scheduleExchanges(problem, kLink, {.bucketBytes = 800}).turns, inTurn);
  // Beside what is computed the first has begun by then.
  const std::vector<ExchangeSchedule::Turn> beside = {{0}, {3}, {1}, {4}, {2}, {5}};
  EXPECT_EQ(scheduleExchanges(problem, kLink, {.beside = true, .bucketBytes = 800}).turns, beside);
}

/// A forward pass of `layers` commands, each of which needs what it gathers.
ExchangeProblem forwardPass(size_t layers, double nanoseconds, int64_t bytes) {
  ExchangeProblem problem;
  for (size_t layer = 0; layer < layers; ++layer)
    problem.commands.push_back({0, {}, Exchange{bytes, 0, 1, false, /*isGather=*/true}});
  for (size_t layer = 0; layer < layers; ++layer)
    problem.commands.push_back(
        {nanoseconds,
         layer == 0 ? std::vector<size_t>{0} : std::vector<size_t>{layer, layers + layer - 1},
         {}});
  return problem;
}

TEST(ExchangeSchedule, HidesAllButTheFirstGathers) {
  const ExchangeProblem problem = forwardPass(10, /*nanoseconds=*/1000, /*bytes=*/400);
  const ExchangeSchedule beside = scheduleExchanges(problem, kLink, {.beside = true});
  expectOrder(problem, beside);
  EXPECT_LE(beside.nanoseconds, 10 * 1000 + kLink.allReduceNanoseconds(2 * 400));
  // In turn no earlier than they are needed: no more than a bucket of them takes memory in vain.
  const ExchangeSchedule inTurn = scheduleExchanges(forwardPass(4, 1000, 400), kLink, {.bucketBytes = 800});
  const std::vector<ExchangeSchedule::Turn> expected = {{0, 1}, {4}, {5}, {2, 3}, {6}, {7}};
  EXPECT_EQ(inTurn.turns, expected);
}

TEST(ExchangeSchedule, WhatAnUpdateAloneNeedsIsGatheredForIt) {
  // 0: a gradient; 1: its sum; 2, 3: what the optimizer keeps; 4: the update.
  ExchangeProblem problem;
  const Exchange gather = {400, 0, 1, false, /*isGather=*/true};
  problem.commands = {
      {1000, {}, {}}, {0, {0}, Exchange{400, 0, 0}}, {0, {}, gather}, {0, {}, gather}, {1, {1, 2, 3}, {}}};
  const std::vector<ExchangeSchedule::Turn> expected = {{0}, {1}, {2, 3}, {4}};
  for (bool beside : {false, true})
    EXPECT_EQ(scheduleExchanges(problem, kLink, {.beside = beside}).turns, expected);
}

TEST(ExchangeSchedule, RandomProgramsKeepTheirOrder) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    ExchangeProblem problem;
    for (size_t number = 0; number < 40; ++number) {
      ExchangeProblem::Command &command = problem.commands.emplace_back();
      for (size_t before = 0; before < number; ++before)
        if (random() % 12 == 0)
          command.predecessors.push_back(before);
      command.nanoseconds = static_cast<double>(random() % 1000);
      if (random() % 4 == 0)
        command = {0, command.predecessors, Exchange{static_cast<int64_t>(random() % 2000), 0, 0}};
      else if (random() % 4 == 0)
        command = {0, {}, Exchange{static_cast<int64_t>(random() % 2000), 0, 1, false, /*isGather=*/true}};
      if (command.exchange && random() % 4 == 0)
        command.exchange = {command.exchange->bytes, 0, 1, false, /*isGather=*/true};
    }
    for (bool beside : {false, true})
      expectOrder(problem, scheduleExchanges(problem, kLink, {.beside = beside}));
  }
}

} // namespace
} // namespace gpuc
