//===- World.h - The ranks of a simulation -----------------------------------===//
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <functional>

namespace gpuc {

/// What is not as it should be.
struct Disturbance {
  /// The share by which a rank's work in a step takes longer, on average: exponentially distributed, anew for
  /// each rank and step.
  double computeJitter = 0;
  double linkJitter = 0;  ///< The same of each exchange.
  int64_t stragglers = 0; ///< The last ranks, which take
  double slowdown = 1;    ///< so many times as long as others.
  uint64_t seed = 0;
};

struct World {
  int64_t ranks = 1;
  /// What an exchange of so many bytes takes once all have come, of several ranks.
  std::function<double(int64_t bytes)> exchangeNanoseconds;
  Disturbance disturbance;
  /// What a rank that computes meanwhile loses for each byte that it exchanges: on the host the cores that
  /// compute copy it.
  double copyNanosecondsPerByte = 0;
};

inline constexpr int64_t kMostSimulatedRanks = 4096;

/// What is wrong with it.
Status check(const World &world);

} // namespace gpuc
