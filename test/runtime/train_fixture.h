// gpuc-train as a user calls it, on a plan that really trains.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/runtime/temporary_folder.h"
#include "test/runtime/train_plan.h"

namespace gpuc::test {

using Json = nlohmann::json;

struct Outcome {
  int exit_code;
  std::string text;  // stdout and stderr
};

inline Outcome execute(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Outcome outcome{-1, ""};
  for (int c; (c = std::fgetc(pipe)) != EOF;) outcome.text += static_cast<char>(c);
  int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

inline std::vector<Json> linesOf(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream text(fileBytes(path));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line, nullptr, false));
    EXPECT_FALSE(lines.back().is_discarded()) << line;
  }
  return lines;
}

/// Without what the clock says.
inline std::vector<Json> timelessLinesOf(const std::string& path) {
  std::vector<Json> lines = linesOf(path);
  for (Json& line : lines)
    for (const char* key : {"samples_per_s", "data_us", "compute_us", "wall_s"}) line.erase(key);
  return lines;
}

class Train : public testing::Test {
 protected:
  std::string command(const std::string& flags) const {
    return std::string(GPUC_TRAIN) + " " + plan_ + " --data=" + data_ + " " + flags;
  }
  Outcome train(const std::string& flags) const { return execute(command(flags)); }

  void expectTrains(const std::string& flags) const {
    Outcome outcome = train(flags);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  }

  /// One line, which contains `part`, and nothing written to the folders and files that the flags name.
  void expectError(int exit_code, const std::string& flags, const std::string& part) const {
    Outcome outcome = train(flags);
    EXPECT_EQ(outcome.exit_code, exit_code) << flags << "\n" << outcome.text;
    EXPECT_EQ(outcome.text.find("error: "), 0u) << outcome.text;
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find('\n'), outcome.text.size() - 1) << outcome.text;
  }

  /// Starts the command in a process of its own, silently.
  pid_t start(const std::string& flags) const {
    pid_t child = ::fork();
    if (child == 0) {
      std::string line = "exec " + command(flags) + " >/dev/null 2>&1";
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }

  TemporaryFolder folder_;
  std::string plan_ = folder_.write("test.plan", trainPlan().seal());
  std::string data_ = writeIdx(folder_, "train", 42);
  std::string eval_ = writeIdx(folder_, "eval", 11);
};

inline bool hasEnded(pid_t child) {
  siginfo_t info = {};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT | WNOHANG);
  return info.si_pid == child;
}

inline int exitCodeOf(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace gpuc::test
