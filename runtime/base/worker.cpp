#include "runtime/base/worker.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpuc {
namespace {

constexpr int kHeldUpInARow = 4;

cpu_set_t coresOfThisThread() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

/// What Linux's sched_getattr and sched_setattr take, of which not all C libraries know.
struct SchedulingWish {
  uint32_t size = sizeof(SchedulingWish);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t turn_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

/// Who waits most of the time has little to do when it is woken, while others wait for that. Where there are
/// no more cores than threads that compute, it would get its turn at their next one, milliseconds later.
/// Since Linux 6.12 who asks for short turns has them at once; before, this changes nothing.
void askForShortTurns() {
  constexpr uint64_t kTurnNs = 100'000;
  SchedulingWish wish;
  if (::syscall(SYS_sched_getattr, 0, &wish, sizeof(wish), 0) != 0 || wish.policy != SCHED_OTHER) return;
  wish.turn_ns = kTurnNs;
  ::syscall(SYS_sched_setattr, 0, &wish, 0);
}

}  // namespace

Worker::Worker(SpinPolicy policy, Work work)
    : policy_(policy), cores_(coresOfThisThread()), thread_([this, work] { loop(work); }) {
  // A thread's first moments may allocate on its behalf; they belong to construction, not to a step.
  begun_.wait();
}

Worker::~Worker() {
  mailbox_.stop.store(true, std::memory_order_relaxed);
  mailbox_.number.fetch_add(1);
  mailbox_.number.notify_one();
  thread_.join();
}

void Worker::start(RangeTask task, int64_t begin, int64_t end) {
  mailbox_.task = task;
  mailbox_.begin = begin;
  mailbox_.end = end;
  // No locked instruction: the caller goes on while the line travels.
  mailbox_.number.store(mailbox_.number.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  mailbox_.number.notify_one();  // costs a system call only if the worker sleeps
}

void Worker::join() {
  const uint32_t task = mailbox_.number.load(std::memory_order_relaxed);
  uint32_t seen = progress_.load(std::memory_order_acquire);
  if (seen == 2 * (task - 1)) {
    // A worker that fell asleep at the very moment of start() may have been missed there.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    mailbox_.number.notify_one();
  }
  for (; seen != 2 * task; seen = progress_.load(std::memory_order_acquire))
    waitForChange(progress_, seen, policy_);
}

bool Worker::takeBack() {
  const uint32_t task = mailbox_.number.load(std::memory_order_relaxed);
  uint32_t before = 2 * (task - 1);
  const bool late = progress_.load(std::memory_order_acquire) == before &&
                    progress_.compare_exchange_strong(before, 2 * task, std::memory_order_acq_rel);
  const int core = sched_getcpu();
  const bool held_up = late || core_.load(std::memory_order_relaxed) == core;
  held_up_in_a_row_ = held_up ? held_up_in_a_row_ + 1 : 0;
  if (held_up_in_a_row_ == kHeldUpInARow) leaveCore(core);
  return late;
}

/// Linux wakes a thread on the core on which it went to sleep. Where cores share no cache it looks for no
/// other, even if that core is busy with who woke it: the worker would then never be in time, or take the
/// caller's turn, with an idle core beside it.
void Worker::leaveCore(int core) {
  held_up_in_a_row_ = 0;
  if (core < 0 || core == left_core_ || policy_.crowded) return;
  cpu_set_t others = cores_;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (pthread_setaffinity_np(thread_.native_handle(), sizeof(others), &others) == 0) left_core_ = core;
}

void Worker::loop(Work work) {
  if (work == Work::waits) askForShortTurns();
  begun_.count_down();
  const SpinPolicy policy = policy_;  // not from a line that the caller writes to
  for (uint32_t seen = 0;;) {
    waitForChange(mailbox_.number, seen, policy);
    seen = mailbox_.number.load(std::memory_order_acquire);
    // Looked at after the number: the end raises that too, and must not pass for a task that can be claimed.
    if (mailbox_.stop.load(std::memory_order_relaxed)) return;
    core_.store(sched_getcpu(), std::memory_order_relaxed);
    uint32_t before = 2 * (seen - 1);
    if (!progress_.compare_exchange_strong(before, 2 * seen - 1, std::memory_order_acq_rel))
      continue;  // taken back
    mailbox_.task(mailbox_.begin, mailbox_.end);
    progress_.store(2 * seen);  // sequentially consistent: notify_one() looks for sleepers after it
    progress_.notify_one();
  }
}

}  // namespace gpuc
