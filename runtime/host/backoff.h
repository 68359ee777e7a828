// How a thread waits for another: awake for about as long as a wake-up would cost, then asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace gpuc {

/// Tells the core that this is a spin loop.
inline void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// How long to stay awake. To wake a sleeper costs about 50 us: spinning that long at most doubles the cost
/// of any wait.
struct SpinPolicy {
  std::chrono::microseconds awake{50};
  bool crowded = false;  // more threads than cores: a spinner keeps the core from whom it waits for

  static SpinPolicy forThreads(int threads) {
    bool crowded = static_cast<unsigned>(threads) > std::thread::hardware_concurrency();
    return {.awake = std::chrono::microseconds(crowded ? 0 : 50), .crowded = crowded};
  }
};

/// Returns once `value` is no longer `old`; what was written before the change is then visible.
template <typename T>
void waitForChange(const std::atomic<T>& value, T old, const SpinPolicy& policy) {
  constexpr int kPausesBetweenClockReads = 64;
  constexpr int kYields = 4;
  if (policy.crowded) {
    for (int i = 0; i < kYields; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      std::this_thread::yield();
    }
  } else {
    auto until = std::chrono::steady_clock::now() + policy.awake;
    do {
      for (int i = 0; i < kPausesBetweenClockReads; ++i) {
        if (value.load(std::memory_order_acquire) != old) return;
        pauseCore();
      }
    } while (std::chrono::steady_clock::now() < until);
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace gpuc
