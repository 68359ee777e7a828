// A thread that waits for one piece of work at a time. The pool's helpers and the streams beside the main one
// are workers. It waits awake for about as long as a wake-up would cost, then asleep.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
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

/// A function over a range and what it needs to know: a std::function that never allocates.
struct RangeTask {
  void (*function)(const void* context, int64_t begin, int64_t end) = nullptr;
  const void* context = nullptr;

  void operator()(int64_t begin, int64_t end) const { function(context, begin, end); }
};

/// start() and join() alternate and come from one thread at a time.
class Worker {
 public:
  /// What a worker does: its share of a computation, or what mostly waits, as for other ranks.
  enum class Work : uint8_t { computes, waits };

  /// Returns when the thread runs.
  explicit Worker(SpinPolicy policy, Work work = Work::computes);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Hands over task(begin, end) and returns.
  void start(RangeTask task, int64_t begin, int64_t end);

  /// Returns when the task that was started is done; its effects are then visible.
  void join();

  /// Takes the started task back if the worker has not begun it, and says whether it did. The task is then
  /// the caller's to do, and join() is not called. A worker that several times in a row is late, or begins on
  /// the caller's core, is sent to other cores than that one.
  bool takeBack();

  /// The thread, for who looks at it from outside.
  std::thread::native_handle_type handle() { return thread_.native_handle(); }

 private:
  void loop(Work work);
  void leaveCore(int core);

  /// What the caller writes, in one cache line: it travels to the worker once for each task.
  struct alignas(64) Mailbox {
    std::atomic<uint32_t> number{0};  // of the task, from 1; written last
    std::atomic<bool> stop{false};
    RangeTask task;
    int64_t begin = 0;
    int64_t end = 0;
  };

  // Who moves `progress_` on from 2 (n - 1), the worker or takeBack(), has task n; only the worker that has
  // it reads it. 2 n - 1: the worker has it; 2 n: it is done, or taken back.
  SpinPolicy policy_;
  cpu_set_t cores_;     // that the worker may run on
  int left_core_ = -1;  // of them, the one that it keeps off
  int held_up_in_a_row_ = 0;
  Mailbox mailbox_;
  alignas(64) std::atomic<uint32_t> progress_{0};
  std::atomic<int> core_{-1};  // on which the worker began its task
  std::latch begun_{1};
  std::thread thread_;
};

}  // namespace gpuc
