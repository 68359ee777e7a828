//===- judge_training.cpp - Whether a training module shows a defect ----------===//
//
//   judge_training FILE    exits with 1 if gpuc computes another thing than FILE means
//
// As gpuc-reduce asks for it, which gives the file as the last argument: 1 is a defect, a crash of the
// compiler among them, and 0 is everything else, be it a file that is no module with a recipe.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/file.h"
#include "test/gradients/TrainingJudge.h"

#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuc::gradients {

static int judge(const char *path) {
  Result<std::string> text = readFile(path);
  Result<Verdict> verdict =
      text.ok() ? judgeTraining(*text, {{0}, {3}, {3, true}}) : Result<Verdict>(text.status());
  if (!verdict.ok())
    std::fprintf(stderr, "%s: %s\n", path, verdict.message().c_str());
  else if (!verdict->fault.empty())
    std::fprintf(stderr, "%s: %s\n", path, verdict->fault.c_str());
  return verdict.ok() && !verdict->fault.empty();
}

} // namespace gpuc::gradients

/// In a process of its own: what crashes there is a defect, too.
int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: judge_training FILE\n");
    return 0;
  }
  const pid_t child = fork();
  if (child == 0)
    _exit(gpuc::gradients::judge(argv[argc - 1]));
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
