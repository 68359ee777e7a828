// Copies of the caller's batch into pinned memory. One thread moves 6 to 12 GB/s, a fifth of what a GPU's
// link does, so large inputs are moved by several.
#pragma once

#include <cstdint>

#include "runtime/base/thread_pool.h"

namespace gpuc::cuda {

class HostCopies {
 public:
  /// `threads`: the caller's included. More than 16 move no more.
  explicit HostCopies(int threads);

  /// Returns when it is done.
  void copy(void* to, const void* from, uint64_t bytes);

 private:
  ThreadPool pool_;
};

/// How many threads are worth their while for inputs of which the largest has so many bytes.
int threadsForCopies(uint64_t largest, int threads);

}  // namespace gpuc::cuda
