// The clock by which commands and steps are timed.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpuc {

/// ns since some moment of the past; it never goes back.
inline int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace gpuc
