// MLIR makes its ops by malloc and does not look at what comes back, and LLVM is built without exceptions:
// one that passes through it finds locks taken and lists half linked. So where there is no memory for
// something small, the process ends here. What is large is a file's or a tensor's, whose reader says of what
// there was too much.
#include <cstddef>

#include "runtime/base/last_line.h"
#include "runtime/base/sanitizers.h"

#ifndef GPUC_SANITIZER_OWNS_MALLOC

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);

namespace {
void* given(void* memory, size_t size) {
  constexpr size_t small = size_t{1} << 20;
  if (!memory && size != 0 && size < small) gpuc::endWithError({"out of memory"});
  return memory;
}
}  // namespace

void* malloc(size_t size) { return given(__libc_malloc(size), size); }
void* calloc(size_t count, size_t size) { return given(__libc_calloc(count, size), count * size); }
void* realloc(void* memory, size_t size) { return given(__libc_realloc(memory, size), size); }
}  // extern "C"

#endif
