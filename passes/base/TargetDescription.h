//===- TargetDescription.h - What the compiler knows of a device's speed ----===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// Rough figures by which the compiler weighs one choice against another; they decide speed, never results.
struct TargetDescription {
  double commandNanoseconds;     // what each command costs before it does anything
  double flopsPerNanosecond;     // f32 contractions
  double bytesPerNanosecond;     // what kernels read and write
  double coreBytesPerNanosecond; // the same of one core
  int64_t cores;                 // CPU cores that a plan is likely to find, multiprocessors of a GPU
  double spreadNanoseconds;      // the least work that is worth another core
  int64_t cacheBytes;            // what a kernel finds again, of what a core read before
  int64_t keptBytes;             // what a kernel keeps of a row that it will need again
  double costlyNanoseconds;      // for one element of exp and its like
};

/// Host: one core with AVX-512. CUDA: an H200.
inline TargetDescription describe(plan::TargetKind kind) {
  if (kind == plan::TargetKind::cuda)
    return {.commandNanoseconds = 2000,
            .flopsPerNanosecond = 50'000,
            .bytesPerNanosecond = 4000,
            .coreBytesPerNanosecond = 30,
            .cores = 132,
            .spreadNanoseconds = 0,
            .cacheBytes = 128 << 10,
            .keptBytes = 0,
            .costlyNanoseconds = 0.1};
  return {.commandNanoseconds = 200,
          .flopsPerNanosecond = 150,
          .bytesPerNanosecond = 20,
          .coreBytesPerNanosecond = 20,
          .cores = 8,
          .spreadNanoseconds = 10'000,
          .cacheBytes = 256 << 10,
          .keptBytes = 32 << 10,
          .costlyNanoseconds = 0.5};
}

inline TargetDescription describe(plan::TargetAttr target) { return describe(target.getKind()); }

} // namespace gpuc
