#include "runtime/base/tool_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "runtime/base/mapped_ranges.h"

namespace gpuc {
namespace {

/// A file opened in place of a closed stdout would receive what is printed. /dev/null the wrong way round
/// keeps the number taken, and reads and writes of it the errors that they are.
void holdStandardDescriptors() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// Formats nothing that would need memory.
void sayException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
  } catch (const std::length_error&) {
    std::fputs("error: out of memory: more is asked for than any machine has\n", stderr);
  } catch (const std::system_error& error) {
    bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    std::fprintf(
        stderr,
        is_thread ? "error: cannot start a thread: %s; lower --threads, or raise ulimit -u\n" : "error: %s\n",
        error.code().message().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  } catch (...) {
    std::fputs("error: unknown exception\n", stderr);
  }
}

/// Nothing is taken down in order: threads may run, and wait for what is no longer there.
[[noreturn]] void endAfterException() {
  sayException();
  ::_exit(1);
}

/// Of an exception that no one catches, or that leaves a thread.
[[noreturn]] void endUncaught() {
  if (!std::current_exception()) std::abort();
  endAfterException();
}

/// Nobody hears of a write that fails when the process ends.
int flushStdout(int exit_code) {
  errno = 0;
  bool failed = std::fflush(stdout) != 0;
  int code = errno;
  if ((!failed && !std::ferror(stdout)) || exit_code != 0) return exit_code;
  std::fprintf(stderr, "error: cannot write stdout: %s\n",
               code != 0 ? std::strerror(code) : "some of it was not taken");
  return 1;
}

}  // namespace

int runTool(int argc, char** argv, int (*tool)(int, char**)) {
  holdStandardDescriptors();
  std::signal(SIGXFSZ, SIG_IGN);
  endOnCutFiles();
  std::set_terminate(endUncaught);
  try {
    return flushStdout(tool(argc, argv));
  } catch (...) {
    endAfterException();
  }
}

}  // namespace gpuc
