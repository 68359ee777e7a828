//===- Simulator.h - Steps of many ranks, event by event --------------------===//
#pragma once

#include "passes/simulate/Schedule.h"
#include "passes/simulate/World.h"

#include <functional>
#include <memory>

namespace gpuc {

/// One execution of a command on one rank, in nanoseconds since the first step began.
struct Executed {
  int64_t rank = 0, step = 0;
  unsigned stream = 0;
  const Schedule::Command *command = nullptr;
  double begin = 0, end = 0;
};

/// Runs steps of all ranks side by side. Each command is looked at once a step, for all ranks together, in an
/// order that streams and events allow; ranks that are alike share one clock.
class Simulator {
public:
  /// The schedule must outlive it.
  Simulator(const Schedule &schedule, const World &world);
  ~Simulator();

  /// Runs one more step. An error if a stream would wait for ever.
  Status step();

  /// When the last rank has ended what has been run so far.
  double now() const;

  /// Calls this for each execution on these ranks from now on.
  void observe(std::vector<int64_t> ranks, std::function<void(const Executed &)> observer);

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Steps to run before those that are looked at: until streams are as far ahead of one another as events let
/// them be.
int64_t warmUpSteps(const Schedule &schedule);

} // namespace gpuc
