#include "runtime/base/last_line.h"

#include <unistd.h>

#include <atomic>

namespace gpuc {
namespace {

std::atomic_flag has_begun = ATOMIC_FLAG_INIT;

/// stdio's buffers and locks may be in any state.
void put(std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

void endWithError(std::initializer_list<std::string_view> parts) {
  while (has_begun.test_and_set()) ::pause();
  put("error: ");
  for (std::string_view part : parts) put(part);
  put("\n");
  ::_exit(1);
}

}  // namespace gpuc
