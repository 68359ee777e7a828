#include "runtime/base/last_line.h"

#include <unistd.h>

#include <atomic>

namespace gpuc {
namespace {

std::atomic_flag has_begun = ATOMIC_FLAG_INIT;
std::atomic<int> last_line_goes_to = STDERR_FILENO;

/// stdio's buffers and locks may be in any state.
void put(std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(last_line_goes_to, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

void sendLastLineTo(int descriptor) { last_line_goes_to = descriptor; }

void endWithError(std::initializer_list<std::string_view> parts) {
  while (has_begun.test_and_set()) ::pause();
  put("error: ");
  for (std::string_view part : parts) put(part);
  put("\n");
  ::_exit(1);
}

}  // namespace gpuc
