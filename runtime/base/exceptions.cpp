#include "runtime/base/exceptions.h"

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

namespace gpuc {

std::array<char, 256> describeException() {
  std::array<char, 256> text = {};
  auto say = [&](const char* format, const char* detail) {
    std::snprintf(text.data(), text.size(), format, detail);
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    say("%s", "out of memory");
  } catch (const std::length_error&) {
    say("out of memory: %s", "more is asked for than any machine has");
  } catch (const std::system_error& error) {
    bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    say(is_thread ? "cannot start a thread: %s; lower --threads, or raise the limits on processes and memory"
                  : "%s",
        std::strerror(error.code().value()));
  } catch (const std::exception& error) {
    say("%s", error.what());
  } catch (...) {
    say("%s", "unknown exception");
  }
  return text;
}

}  // namespace gpuc
