// Simulates steps of a plan on worlds of many ranks, and says what became of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "passes/cost/Network.h"
#include "passes/simulate/StepTimes.h"

namespace gpuc {

/// Where a simulation has its plans from.
struct SimulatedPlans {
  /// The step of the plan for so many ranks that exchange by `link`, in buckets of at most so many bytes; 0:
  /// as suits the link.
  std::function<Result<Schedule>(int64_t ranks, const Link& link, int64_t bucketBytes)> planFor;
  std::optional<Schedule> ofOneRank;  // that of a plan which knows no ranks
  int64_t rows = 0;                   // of a rank in a step; 0 if nobody knows
};

struct SimulationOptions {
  std::vector<int64_t> ranks;
  Network network;
  Disturbance disturbance;
  double copyNanosecondsPerByte = 0;
  int64_t bucketBytes = 0;
  bool tunesBuckets = false;  // says which size is best
  int64_t steps = 16;         // whose mean is told
};

/// What is wrong with them.
Status check(const SimulationOptions& options);

/// Buckets of at most so many bytes.
struct SimulatedBuckets {
  int64_t bytes = 0, exchanges = 0;
  double step = 0;
};

struct SimulatedWorld {
  int64_t ranks = 1, machines = 1;
  Link link;  // that its plan is made for
  Schedule schedule;
  StepTimes times;
  double ofOneRank = 0;                   // what a step takes that knows no ranks
  std::vector<Limit> limits;              // what it would take without one thing or another, the best first
  std::vector<SimulatedBuckets> buckets;  // that were tried

  /// What a rank gets done, relative to one rank alone.
  double efficiency() const { return ofOneRank / times.step; }

  /// The fastest; the first of several. Null if none were tried.
  const SimulatedBuckets* bestBuckets() const;
};

Result<std::vector<SimulatedWorld>> simulate(const SimulatedPlans& plans, const SimulationOptions& options);

/// What is in the way most: "bandwidth between machines", or "compute" if nothing else costs a hundredth.
std::string limitOf(const SimulatedWorld& world);

/// For people.
std::string tableOf(const SimulatedPlans& plans, const std::vector<SimulatedWorld>& worlds);

/// As indented JSON.
std::string jsonOf(const SimulationOptions& options, const std::vector<SimulatedWorld>& worlds);

/// Two steps of a world in the long run, as gpuc-run --profile writes them; of the first rank, and of the
/// last if it may be another's.
Result<std::string> traceOf(const SimulatedWorld& world, const SimulationOptions& options);

}  // namespace gpuc
