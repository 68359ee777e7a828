#include "runtime/host/worker.h"

namespace gpuc {

Worker::Worker(SpinPolicy policy) : policy_(policy), thread_([this] { loop(); }) {}

Worker::~Worker() {
  stop_ = true;
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

void Worker::loop() {
  for (uint32_t done = 0;; ++done) {
    waitForChange(started_, done, policy_);
    if (stop_) return;
    task_(begin_, end_);
    finished_.store(done + 1, std::memory_order_release);
    finished_.notify_one();
  }
}

}  // namespace gpuc
