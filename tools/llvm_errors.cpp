#include "tools/llvm_errors.h"

#include <cstring>

#include "llvm/Support/ErrorHandling.h"
#include "runtime/base/last_line.h"

namespace gpuc {

void endInOneLineOnLlvmErrors() {
  llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
    if (std::strstr(reason, "pthread_create"))
      endWithError({"cannot start a thread: ", reason,
                    "; lower --threads, or raise the limits on processes and memory"});
    endWithError({reason});
  });
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { endWithError({"out of memory"}); });
}

}  // namespace gpuc
