#include "runtime/host/worker.h"

namespace gpuc {

Worker::Worker(SpinPolicy policy) : policy_(policy), thread_([this] { loop(); }) {}

Worker::~Worker() {
  stop_.store(true, std::memory_order_relaxed);
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_one();
  thread_.join();
}

void Worker::start(RangeTask task, int64_t begin, int64_t end) {
  task_ = task;
  begin_ = begin;
  end_ = end;
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_one();  // costs a system call only if the worker sleeps
}

void Worker::join() {
  uint32_t target = started_.load(std::memory_order_relaxed);
  for (uint32_t seen; (seen = finished_.load(std::memory_order_acquire)) != target;)
    waitForChange(finished_, seen, policy_);
}

bool Worker::takeBack() {
  uint32_t task = started_.load(std::memory_order_relaxed), before = task - 1;
  return claimed_.compare_exchange_strong(before, task, std::memory_order_acq_rel);
}

void Worker::loop() {
  for (uint32_t seen = 0;;) {
    waitForChange(started_, seen, policy_);
    seen = started_.load(std::memory_order_acquire);
    // Looked at after `started_`: the end raises that too, and must not pass for a task that can be claimed.
    if (stop_.load(std::memory_order_relaxed)) return;
    uint32_t before = seen - 1;
    if (!claimed_.compare_exchange_strong(before, seen, std::memory_order_acq_rel)) continue;  // taken back
    task_(begin_, end_);
    finished_.store(seen, std::memory_order_release);
    finished_.notify_one();
  }
}

}  // namespace gpuc
