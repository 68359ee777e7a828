// The planner's entry: a problem in, offsets out.
#pragma once

#include <cstdint>
#include <optional>

#include "passes/placement/Problem.h"
#include "runtime/base/status.h"

namespace gpuc::placement {

struct SolverOptions {
  /// How hard to search once the greedies have missed the goal, in steps of about a nanosecond. It alone ends
  /// a search by default, so that the same problem and seed always give the same offsets.
  int64_t effort = 1'000'000'000;
  /// Also ends the search after this many seconds, with the best that was found until then; what comes out
  /// may then depend on the machine.
  std::optional<double> time_limit_s = std::nullopt;
  uint64_t seed = 0;
  /// A height that is nearly as good as the lower bound: as long as it is not reached, it is searched for
  /// before anything lower, but for one try of the bound itself. Without effect with a capacity.
  int64_t enough = 0;
  /// Whether what the greedies find is left as it is.
  bool greedies_alone = false;
};

/// Places all buffers. The goal is the lower bound, or, with a capacity, whatever fits it; the search ends as
/// soon as the goal is reached. Without a capacity the lowest placement found is the result. Errors: the
/// problem is malformed (see checkProblem), or nothing found fits the capacity; the message then gives the
/// height reached, the lower bound and the buffers alive at the peak.
Result<Solution> solve(const Problem& problem, const SolverOptions& options = {});

}  // namespace gpuc::placement
