#include "runtime/tooling/allocation_hook.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<int64_t> heap_count{0}, map_count{0}, largest{0}, held{0}, most_held{0};

void raise(std::atomic<int64_t>& number, int64_t mine) {
  int64_t seen = number.load(std::memory_order_relaxed);
  while (seen < mine && !number.compare_exchange_weak(seen, mine, std::memory_order_relaxed)) {
  }
}

void note(std::atomic<int64_t>& count, size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  raise(largest, static_cast<int64_t>(size));
}

void hold(size_t size) {
  const int64_t mine = static_cast<int64_t>(size);
  raise(most_held, held.fetch_add(mine, std::memory_order_relaxed) + mine);
}

void release(size_t size) { held.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed); }

}  // namespace

#ifdef GPUC_SANITIZER_OWNS_MALLOC

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void*);
namespace {
const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t size) {
      note(heap_count, size);
      hold(size);
    },
    [](const volatile void* memory) {
      if (memory) release(__sanitizer_get_allocated_size(memory));
    });
}  // namespace

#else

// glibc's own functions under the names by which it keeps them reachable for exactly this.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

namespace {
/// What was asked for, and what the allocator gave.
void* given(void* memory, size_t size) {
  note(heap_count, size);
  hold(malloc_usable_size(memory));  // 0 of null
  return memory;
}
}  // namespace

void* malloc(size_t size) { return given(__libc_malloc(size), size); }
void* calloc(size_t count, size_t size) { return given(__libc_calloc(count, size), count * size); }
void* memalign(size_t alignment, size_t size) { return given(__libc_memalign(alignment, size), size); }
void* realloc(void* memory, size_t size) {
  const size_t before = malloc_usable_size(memory);
  void* moved = __libc_realloc(memory, size);
  if (moved || size == 0) release(before);
  return given(moved, size);
}
void free(void* memory) {
  const int error = errno;  // which a caller may have yet to read
  release(malloc_usable_size(memory));
  __libc_free(memory);
  errno = error;
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}

void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) noexcept {
  note(map_count, length);
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, length, protection, flags, descriptor, offset));
}
void* mmap64(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) noexcept {
  return mmap(address, length, protection, flags, descriptor, offset);
}
}  // extern "C"

#endif

namespace gpuc {

AllocationCount allocationCount() { return {heap_count.load(), map_count.load()}; }
int64_t largestAllocation() { return largest.load(); }
void resetLargestAllocation() { largest.store(0); }
int64_t heldBytes() { return held.load(); }
int64_t mostHeldBytes() { return most_held.load(); }
void resetMostHeldBytes() { most_held.store(held.load()); }

}  // namespace gpuc
