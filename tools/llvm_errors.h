// What LLVM itself cannot go on from: no memory, a thread that cannot be made, a broken invariant.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "llvm/Support/ErrorHandling.h"

namespace gpuc {

/// From now on these end the process as every error does, and not in a core dump: "error: …", status 1.
inline void endInOneLineOnLlvmErrors() {
  // Neither allocates, nor takes anything down: threads may run.
  llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
    bool is_thread = std::strstr(reason, "pthread_create");
    std::fprintf(stderr,
                 is_thread ? "error: cannot start a thread: %s; lower --threads, or raise the limits on "
                             "processes and memory\n"
                           : "error: %s\n",
                 reason);
    ::_exit(1);
  });
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) {
    std::fputs("error: out of memory\n", stderr);
    ::_exit(1);
  });
}

}  // namespace gpuc
