// Whether a program's commands are shared as the trial of its steps says.
#include "runtime/host/spread_trial.h"

#include <gtest/gtest.h>

namespace gpuc {
namespace {

/// One launch of 1 ms, which two threads gain by.
HostProgram oneLaunch() {
  HostProgram program;
  HostCommand command{};
  command.launch = {.function = nullptr, .first_tile = 0, .tiles = 1000, .tile_ns = 1000.};
  program.streams.push_back({command});
  program.accesses.push_back({0, 0, 0, 64, 64, /*written=*/true});
  return program;
}

TEST(SpreadTrial, TakesEachWayInTurn) {
  constexpr int kMostSteps = 50'000'000;
  HostProgram program = oneLaunch();
  const HostCommand& command = program.streams[0][0];
  SpreadTrial trial(&program, 2);
  EXPECT_TRUE(command.spread);
  for (int step = 0; step < kMostSteps && command.spread; ++step) {
    trial.beginStep();
    trial.endStep();
  }
  EXPECT_FALSE(command.spread) << "one thread alone was never tried";
}

TEST(SpreadTrial, OneThreadSharesNothing) {
  HostProgram program = oneLaunch();
  SpreadTrial trial(&program, 1);
  trial.beginStep();
  trial.endStep();
  EXPECT_FALSE(program.streams[0][0].spread);
}

}  // namespace
}  // namespace gpuc
