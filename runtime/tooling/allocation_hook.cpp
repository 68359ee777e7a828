#include "runtime/tooling/allocation_hook.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<int64_t> heap_count{0}, map_count{0}, largest{0};

void note(std::atomic<int64_t>& count, size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  int64_t seen = largest.load(std::memory_order_relaxed), mine = static_cast<int64_t>(size);
  while (seen < mine && !largest.compare_exchange_weak(seen, mine, std::memory_order_relaxed)) {
  }
}

}  // namespace

#ifdef GPUC_SANITIZER_OWNS_MALLOC

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
namespace {
const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t size) { note(heap_count, size); }, [](const volatile void*) {});
}  // namespace

#else

// glibc's own functions under the names by which it keeps them reachable for exactly this.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  note(heap_count, size);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  note(heap_count, count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  note(heap_count, size);
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  note(heap_count, size);
  return __libc_memalign(alignment, size);
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

}  // namespace gpuc
