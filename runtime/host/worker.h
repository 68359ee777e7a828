// A thread that waits for one piece of work at a time. The pool's helpers and the streams beside the main one
// are workers.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "runtime/host/backoff.h"

namespace gpuc {

/// A function over a range and what it needs to know: a std::function that never allocates.
struct RangeTask {
  void (*function)(const void* context, int64_t begin, int64_t end) = nullptr;
  const void* context = nullptr;

  void operator()(int64_t begin, int64_t end) const { function(context, begin, end); }
};

/// start() and join() alternate and come from one thread at a time.
class Worker {
 public:
  explicit Worker(SpinPolicy policy);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Hands over task(begin, end) and returns.
  void start(RangeTask task, int64_t begin, int64_t end);

  /// Returns when the task that was started is done; its effects are then visible.
  void join();

  /// Takes the started task back if the worker has not begun it, and says whether it did. The task is then
  /// the caller's to do, and join() is not called.
  bool takeBack();

 private:
  void loop();

  // The worker's mailbox: tasks are numbered from 1. A task is written before `started_` is raised to its
  // number. Who raises `claimed_` to that number, the worker or takeBack(), has the task; only the worker
  // that has it reads it.
  SpinPolicy policy_;
  RangeTask task_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<uint32_t> started_{0};
  alignas(64) std::atomic<uint32_t> claimed_{0};
  alignas(64) std::atomic<uint32_t> finished_{0};
  std::thread thread_;
};

}  // namespace gpuc
