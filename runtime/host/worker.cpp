#include "runtime/host/worker.h"

#include <pthread.h>

namespace gpuc {
namespace {

constexpr int kLateInARow = 4;

cpu_set_t coresOfThisThread() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

}  // namespace

Worker::Worker(SpinPolicy policy)
    : policy_(policy), cores_(coresOfThisThread()), thread_([this] { loop(); }) {}

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
  const bool late = claimed_.compare_exchange_strong(before, task, std::memory_order_acq_rel);
  late_in_a_row_ = late ? late_in_a_row_ + 1 : 0;
  if (late_in_a_row_ == kLateInARow) leaveCore(sched_getcpu());
  return late;
}

/// Linux wakes a thread on the core on which it went to sleep. Where cores share no cache it looks for no
/// other, even if that core is busy with who woke it: the worker would then never be in time, with an idle
/// core beside it.
void Worker::leaveCore(int core) {
  late_in_a_row_ = 0;
  if (core < 0 || core == left_core_ || policy_.crowded) return;
  cpu_set_t others = cores_;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (pthread_setaffinity_np(thread_.native_handle(), sizeof(others), &others) == 0) left_core_ = core;
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
