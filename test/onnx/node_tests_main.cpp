//===- node_tests_main.cpp - Runs folders of ONNX node cases ----------------===//
//
//   onnx_node_tests [--jobs=N] FOLDER…      one line a case: "passed NAME", "failed NAME: why", "skipped
//   NAME: why"
//
// Each case runs in a process of its own, forked from this one, so that one that crashes or hangs is a failed
// case and no more, and none pays for a program's start. Exit code 1 if a case failed.
//
//===----------------------------------------------------------------------===//

#include "test/onnx/NodeCase.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

namespace {

using gpuc::onnx::Outcome;
using gpuc::onnx::Verdict;

constexpr unsigned kMostSeconds = 120; // Of processor time, for a case that never ends.
constexpr const char *kVerdicts[] = {"passed", "failed", "skipped"};

struct Running {
  size_t index;
  int pipe;
};

/// Starts a case; what the child writes to the pipe is its verdict's digit and reason.
pid_t start(const std::string &folder, int &readEnd) {
  int ends[2];
  if (pipe(ends) != 0)
    std::abort();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    rlimit limit{kMostSeconds, kMostSeconds};
    setrlimit(RLIMIT_CPU, &limit);
    Outcome outcome = gpuc::onnx::runNodeCase(folder);
    std::string text = std::to_string(static_cast<int>(outcome.verdict)) + outcome.reason.substr(0, 2000);
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (write(ends[1], text.data(), text.size()) < 0)
      _exit(2);
    _exit(0);
  }
  close(ends[1]);
  readEnd = ends[0];
  return child;
}

Outcome collect(int status, int pipe) {
  char buffer[4096];
  ssize_t size = read(pipe, buffer, sizeof(buffer));
  close(pipe);
  if (WIFSIGNALED(status))
    return {Verdict::failed, std::string("died of ") + strsignal(WTERMSIG(status))};
  if (size < 1 || buffer[0] < '0' || buffer[0] > '2')
    return {Verdict::failed, "ended without a verdict"};
  return {static_cast<Verdict>(buffer[0] - '0'), std::string(buffer + 1, size - 1)};
}

} // namespace

int main(int argc, char **argv) {
  size_t jobs = 2;
  std::vector<std::string> folders;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--jobs=", 7) == 0)
      jobs = std::max(1, std::atoi(argv[i] + 7));
    else
      folders.push_back(argv[i]);
  }
  std::vector<Outcome> outcomes(folders.size());
  std::map<pid_t, Running> running;
  size_t next = 0;
  while (next < folders.size() || !running.empty()) {
    while (next < folders.size() && running.size() < jobs) {
      Running started{next, -1};
      pid_t child = start(folders[next++], started.pipe);
      running[child] = started;
    }
    int status = 0;
    pid_t ended = wait(&status);
    auto found = running.find(ended);
    if (found == running.end())
      std::abort();
    outcomes[found->second.index] = collect(status, found->second.pipe);
    running.erase(found);
  }
  bool failed = false;
  for (size_t i = 0; i < folders.size(); ++i) {
    const Outcome &outcome = outcomes[i];
    std::string name = std::filesystem::path(folders[i]).filename().string();
    std::printf("%s %s%s%s\n", kVerdicts[static_cast<int>(outcome.verdict)], name.c_str(),
                outcome.reason.empty() ? "" : ": ", outcome.reason.c_str());
    failed |= outcome.verdict == Verdict::failed;
  }
  return failed;
}
