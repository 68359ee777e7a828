// Commands that come late, at random: whatever streams and ranks do then, no bit may change.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

namespace gpuc {

/// Of one stream.
class Delays {
 public:
  Delays(uint64_t seed, uint32_t stream) : random_(seed * 0x9e3779b97f4a7c15 + stream) {}

  /// Sleeps for up to 2 ms before one in sixteen commands.
  void beforeCommand() {
    constexpr uint64_t kOneIn = 16, kMostMicroseconds = 2000;
    const uint64_t number = random_();
    if (number % kOneIn == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(number / kOneIn % kMostMicroseconds));
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace gpuc
