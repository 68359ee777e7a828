// Counts what the whole process asks of the allocator. Add allocation_hook.cpp to a binary (a test, gpuc-run)
// and every malloc, calloc, realloc, aligned_alloc, posix_memalign, operator new and mmap of every thread is
// counted; under the address and thread sanitizers, which own malloc, their hooks are used and mmap is not
// counted.
#pragma once

#include <cstdint>

#include "runtime/base/sanitizers.h"

namespace gpuc {

#ifdef GPUC_SANITIZER_OWNS_MALLOC
inline constexpr bool kCountsMaps = false;
#else
inline constexpr bool kCountsMaps = true;
#endif

struct AllocationCount {
  int64_t heap = 0;  // calls that gave heap memory
  int64_t maps = 0;  // calls of mmap by anyone but the allocator itself
  int64_t total() const { return heap + maps; }
};

/// Since the start of the process.
AllocationCount allocationCount();

/// The largest length of a single mmap or heap allocation since the last call of resetLargestAllocation().
int64_t largestAllocation();
void resetLargestAllocation();

/// Bytes of heap memory that were given and not yet freed; and the most that they have been since the last
/// call of resetMostHeldBytes().
int64_t heldBytes();
int64_t mostHeldBytes();
void resetMostHeldBytes();

}  // namespace gpuc
