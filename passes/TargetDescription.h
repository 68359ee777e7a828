//===- TargetDescription.h - What the compiler knows of a device's speed ----===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// Rough figures by which the compiler weighs one choice against another; they decide speed, never results.
struct TargetDescription {
  double copyBytesPerNanosecond; // host memory to the device's arena
  double wakeNanoseconds;        // until work handed to another stream begins
  int64_t inputSlots;            // when copies run beside compute
  double commandNanoseconds;     // what each command costs before it does anything
  double flopsPerNanosecond;     // f32 contractions
  double bytesPerNanosecond;     // what kernels read and write
};

/// Host: one core with AVX-512; waking a sleeping thread takes 48 µs. CUDA: an H200, whose copy engine always
/// runs beside compute.
inline TargetDescription describe(plan::TargetAttr target) {
  if (target.getKind() == plan::TargetKind::cuda)
    return {.copyBytesPerNanosecond = 50,
            .wakeNanoseconds = 0,
            .inputSlots = 2,
            .commandNanoseconds = 2000,
            .flopsPerNanosecond = 50'000,
            .bytesPerNanosecond = 4000};
  return {.copyBytesPerNanosecond = 10,
          .wakeNanoseconds = 48'000,
          .inputSlots = 2,
          .commandNanoseconds = 200,
          .flopsPerNanosecond = 150,
          .bytesPerNanosecond = 20};
}

} // namespace gpuc
