#include "runtime/base/tool_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "runtime/base/exceptions.h"
#include "runtime/base/last_line.h"
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

/// Of an exception that no one catches, or that leaves a thread.
[[noreturn]] void endUncaught() {
  if (!std::current_exception()) std::abort();
  endWithError({describeException().data()});
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
    endWithError({describeException().data()});
  }
}

int exitStatus(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace gpuc
