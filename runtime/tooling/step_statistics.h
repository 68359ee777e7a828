// How long steps took, and what they allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/gpuc.h"

namespace gpuc {

struct StepStatistics {
  int64_t steps = 0;
  double median_us = 0;
  double min_us = 0;
  double max_us = 0;
  int64_t allocations_per_step = 0;  // by all threads, of the step that made the most
};

/// Counts allocations of the whole process so far.
using AllocationCounter = int64_t (*)();

/// Runs a program `warmup` times unmeasured, then `repeat` times; each is waited for. Errors: a step made NaN
/// or infinities, of a plan that checks for them.
Result<StepStatistics> measureSteps(Session& session, ProgramId id, std::span<const HostTensorView> inputs,
                                    int64_t warmup, int64_t repeat, AllocationCounter allocations);

}  // namespace gpuc
