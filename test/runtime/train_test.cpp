// gpuc-train as a user runs it: metrics, evaluation, checkpoints, going on after a stop or a kill, errors.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "runtime/state/safetensors.h"
#include "test/runtime/temporary_folder.h"
#include "test/runtime/train_plan.h"

namespace gpuc::test {
namespace {

using Json = nlohmann::json;

struct Outcome {
  int exit_code;
  std::string text;  // stdout and stderr
};

Outcome execute(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Outcome outcome{-1, ""};
  for (int c; (c = std::fgetc(pipe)) != EOF;) outcome.text += static_cast<char>(c);
  int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

std::vector<Json> linesOf(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream text(fileBytes(path));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line, nullptr, false));
    EXPECT_FALSE(lines.back().is_discarded()) << line;
  }
  return lines;
}

/// Without what the clock says.
std::vector<Json> timelessLinesOf(const std::string& path) {
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

  TemporaryFolder folder_;
  std::string plan_ = folder_.write("test.plan", trainPlan().seal());
  std::string data_ = writeIdx(folder_, "train", 42);
  std::string eval_ = writeIdx(folder_, "eval", 11);
};

TEST_F(Train, WritesALineForEachUpdateAndEvaluation) {
  expectTrains("--epochs=2 --eval-data=" + eval_ + " --metrics=" + folder_ / "m");
  std::vector<Json> lines = linesOf(folder_ / "m");
  ASSERT_EQ(lines.size(), 2u * (10 + 1) + 1u);  // 42 samples are 10 batches of 4
  for (int64_t i = 0; i < 10; ++i) {
    const Json& line = lines[static_cast<size_t>(i)];
    EXPECT_EQ(line["event"], "step");
    EXPECT_EQ(line["step"], i + 1);
    EXPECT_EQ(line["epoch"], 1);
    EXPECT_EQ(line["loss_scale"], 1.0);
    EXPECT_EQ(line["skipped"], false);
    EXPECT_EQ(line["lr"].get<float>(), 0.01f / (1.0f + 0.001f * static_cast<float>(i)));
    EXPECT_GT(line["grad_norm"], 0.0);
    EXPECT_GT(line["loss"], 0.0);
    EXPECT_GT(line["samples_per_s"], 0.0);
    EXPECT_GE(line["data_us"], 0.0);
    EXPECT_GT(line["compute_us"], 0.0);
  }
  EXPECT_EQ(lines[10]["event"], "eval");
  EXPECT_EQ(lines[10]["step"], 10);
  EXPECT_EQ(lines[11]["epoch"], 2);
  EXPECT_EQ(lines[21]["event"], "eval");
  EXPECT_EQ(lines[21]["step"], 20);
  EXPECT_EQ(lines[22]["event"], "end");
  EXPECT_EQ(lines[22]["steps"], 20);
  EXPECT_EQ(lines[22]["epochs"], 2);
  EXPECT_EQ(lines[22]["loss"], lines[21]["loss"]);
  EXPECT_EQ(lines[22]["accuracy"], lines[21]["accuracy"]);
}

}  // namespace
}  // namespace gpuc::test
