//===- StepTimes.h - What a step takes in the long run, and why -------------===//
#pragma once

#include "passes/simulate/Schedule.h"
#include "passes/simulate/World.h"

namespace gpuc {

/// What a step takes on average, in nanoseconds. `compute`, `exposed` and `waiting` add up to it.
struct StepTimes {
  double step = 0;
  double compute = 0; ///< Of a rank whose exchanges take no time,
  double exposed = 0; ///< what exchanges add to it,
  double waiting = 0; ///< and what ranks that are not alike, or not always, add to that.

  double efficiency() const { return compute / step; }
};

/// The mean of so many steps, after some that are not looked at.
Result<double> meanStep(const Schedule &schedule, const World &world, int64_t steps);
Result<StepTimes> stepTimes(const Schedule &schedule, const World &world, int64_t steps);

/// The same world without one thing that is in its way.
struct Relief {
  std::string name;
  World world;
};

/// What a step would take then.
struct Limit {
  std::string name;
  double step;
};

/// That which costs most first.
Result<std::vector<Limit>> limitsOf(const Schedule &schedule, const std::vector<Relief> &reliefs,
                                    int64_t steps);

/// The world without its disturbances, one for each kind that it has.
std::vector<Relief> calmed(const World &world);

} // namespace gpuc
