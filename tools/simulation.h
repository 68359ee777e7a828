// Simulates steps of a plan on worlds of many ranks, and says what became of them.
#pragma once

#include <string>
#include <vector>

#include "passes/cost/Network.h"
#include "passes/simulate/StepTimes.h"

namespace gpuc {

struct SimulationOptions {
  std::vector<int64_t> ranks;
  Network network;
  Disturbance disturbance;
  int64_t steps = 16;  // whose mean is told
};

/// What is wrong with them.
Status check(const SimulationOptions& options);

struct SimulatedWorld {
  int64_t ranks = 1, machines = 1;
  StepTimes times;
  std::vector<Limit> limits;  // what it would take without one thing or another, the best first
};

Result<std::vector<SimulatedWorld>> simulate(const Schedule& schedule, const SimulationOptions& options);

/// What is in the way most: "bandwidth between machines", or "compute" if nothing else costs a hundredth.
std::string limitOf(const SimulatedWorld& world);

/// For people.
std::string tableOf(const Schedule& schedule, const std::vector<SimulatedWorld>& worlds);

/// As indented JSON.
std::string jsonOf(const Schedule& schedule, const SimulationOptions& options,
                   const std::vector<SimulatedWorld>& worlds);

/// Two steps in the long run of the last of the worlds, as gpuc-run --profile writes them; of the first rank,
/// and of the last if it may be another's.
Result<std::string> traceOf(const Schedule& schedule, const SimulationOptions& options);

}  // namespace gpuc
