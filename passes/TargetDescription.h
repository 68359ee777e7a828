//===- TargetDescription.h - What the compiler knows of a device's speed ----===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// Rough figures by which the compiler weighs one choice against another; they decide speed, never results.
struct TargetDescription {
  double copyBytesPerNanosecond; // host memory to the device's arena
  double wakeNanoseconds;        // until work handed to another stream begins
  int64_t inputSlots;            // when copies run beside compute
};

/// Host: a core copies about 10 GB/s from cold memory, waking a sleeping thread takes 48 µs. CUDA: copies always run on
/// the copy engine, beside compute.
inline TargetDescription describe(plan::TargetAttr target) {
  if (target.getKind() == plan::TargetKind::cuda)
    return {/*copyBytesPerNanosecond=*/50, /*wakeNanoseconds=*/0, /*inputSlots=*/2};
  return {/*copyBytesPerNanosecond=*/10, /*wakeNanoseconds=*/48'000, /*inputSlots=*/2};
}

} // namespace gpuc
