// gpuc's own thread pool: cuts a range of tiles among threads that stay awake between the commands of a step.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/worker.h"

namespace gpuc {

class ThreadPool {
 public:
  /// `threads` compute, the one that calls parallelFor among them.
  explicit ThreadPool(int threads);

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Runs task over [0, tiles), cut into at most threads() contiguous parts of at least `grain` tiles each,
  /// and returns when all is done. How the range is cut must not change what is computed. If another stream
  /// has the pool just now, the caller computes everything itself.
  void parallelFor(int64_t tiles, int64_t grain, RangeTask task);

 private:
  std::mutex in_use_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// The cores that this process may run on.
int availableCores();

}  // namespace gpuc
