#include "runtime/base/thread_pool.h"

#include <sched.h>

#include <algorithm>

namespace gpuc {

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i)
    workers_.push_back(std::make_unique<Worker>(SpinPolicy::forThreads(threads)));
}

void ThreadPool::parallelFor(int64_t tiles, int64_t grain, RangeTask task) {
  int64_t parts = std::min<int64_t>(threads(), tiles / std::max<int64_t>(grain, 1));
  std::unique_lock lock(in_use_, std::defer_lock);
  if (parts <= 1 || !lock.try_lock()) return task(0, tiles);

  // tiles · part fits: the plan's verifier bounds tiles by 2^40.
  auto bound = [&](int64_t part) { return tiles * part / parts; };
  for (int64_t part = 1; part < parts; ++part) workers_[part - 1]->start(task, bound(part), bound(part + 1));
  task(0, bound(1));
  // A worker that sleeps, or whose core is busy with something else, must not hold up the step: what it has
  // not begun is done here, the last part first, because the first workers were started first.
  for (int64_t part = parts - 1; part >= 1; --part)
    if (workers_[part - 1]->takeBack())
      task(bound(part), bound(part + 1));
    else
      workers_[part - 1]->join();
}

int availableCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

}  // namespace gpuc
