//===- training_graphs_test.cpp - Random models, trained at every level -------===//
//
// For each seed: a random model with a recipe (TrainingGraph.h), compiled whole at -O0, which fuses nothing,
// and at -O3. After @init and each of three steps losses, the gradient's norm and all variables, an
// optimizer's among them, must be what the reference interpreter makes of the expanded step within
// 64 · ε · Σ|terms| (test/reference/RunningError.h). With --check-numerics, and with recomputation, the bits
// must be the same. One seed of 25 is compiled at -O1 and -O2 as well, which differ from -O3 in LLVM's
// optimizations alone: the bits must be the same. And two steps over parts of the batch, as the reference
// interprets them, are those over all of it.
//
// A module that fails is written to a file, and the command printed that shrinks it.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/TrainingGraph.h"
#include "test/gradients/TrainingJudge.h"

#include "runtime/base/file.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gpuc::gradients {
namespace {

/// 50, or as many as GPUC_RANDOM_GRAPHS says.
int graphCount() {
  const char *wish = std::getenv("GPUC_RANDOM_GRAPHS");
  return wish ? std::max(1, std::atoi(wish)) : 50;
}

/// Of everything that the seeds below compared.
Coverage covered;

class TrainingGraphTest : public testing::TestWithParam<int> {
protected:
  TrainingGraphTest() : text_(trainingGraph(GetParam())) {}
  ~TrainingGraphTest() override {
    if (!HasFailure())
      return;
    const std::string path = testing::TempDir() + "training_graph_" + std::to_string(GetParam()) + ".mlir";
    const bool written = writeFileAtomically(path, text_).ok();
    ADD_FAILURE() << "seed " << GetParam() << (written ? ": " + path : ":\n" + text_) << "\nto shrink it:\n"
                  << GPUC_BINARY_DIR "/bin/gpuc-reduce " << path
                  << " -reduce-graph='test=" GPUC_BINARY_DIR "/test/judge_training'";
  }

  std::string text_;
};

TEST_P(TrainingGraphTest, TrainsAsItIsMeant) {
  std::vector<CompiledAs> ways = {{0}, {3}, {3, /*checkNumerics=*/true}};
  for (const char *policy : {"sqrt", "full", "save=matmul"})
    ways.push_back({3, false, policy});
  if (GetParam() % 25 == 3)
    ways = {{0}, {0, true}, {0, true, "full"}, {1}, {2}, {3}, {3, true}, {3, true, "full"}};
  Result<Verdict> verdict = judgeTraining(text_, ways);
  ASSERT_TRUE(verdict.ok()) << verdict.message();
  EXPECT_EQ(verdict->fault, "");
  covered.tight += verdict->coverage.tight;
  covered.all += verdict->coverage.all;
}

TEST_P(TrainingGraphTest, PartsAreTheBatch) {
  if (text_.find("gpuc.batch_norm") != std::string::npos)
    GTEST_SKIP() << "parts have means of their own";
  if (const size_t total = text_.find("return %total,"); total != std::string::npos)
    text_.replace(total, 14, "return %sum,"); // without what is no sum over rows
  for (auto [microbatches, ranks] : {std::pair(2, 1), {1, 2}, {2, 2}}) {
    Result<Verdict> verdict = judgeParts(text_, microbatches, ranks);
    ASSERT_TRUE(verdict.ok()) << verdict.message();
    EXPECT_EQ(verdict->fault, "") << microbatches << " microbatches on each of " << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TrainingGraphTest, testing::Range(0, graphCount()),
                         [](const auto &info) { return std::to_string(info.param); });

/// Few elements lie behind a decision that rounding may turn.
class TrainingCoverage : public testing::Environment {
  void TearDown() override {
    std::printf("%lld of %lld numbers compared within 1/128 of their tensor's largest\n",
                static_cast<long long>(covered.tight), static_cast<long long>(covered.all));
    EXPECT_GE(covered.tight, covered.all * 9 / 10);
  }
};

[[maybe_unused]] testing::Environment *coverage =
    testing::AddGlobalTestEnvironment(new TrainingCoverage); // which owns it

} // namespace
} // namespace gpuc::gradients
