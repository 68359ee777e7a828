//===- memory_budgets_test.cpp - Random models within random budgets ----------===//
//
// For each seed: a random model with a recipe (TrainingGraph.h), and budgets drawn from somewhat less than
// the least plan takes to more than the plain one does, which come in falling order. No arena is longer than
// its budget; no plan of a smaller budget takes more memory, or less predicted time; what has no plan is
// below the least of the curve. With one of the budgets the model is trained: to the bits of the plain plan.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/TrainingGraph.h"
#include "test/gradients/TrainingJudge.h"

#include "passes/Compiler.h"
#include "passes/MemoryBudget.h"
#include "passes/report/Report.h"

#include "runtime/base/file.h"

#include "llvm/Support/JSON.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace gpuc::gradients {
namespace {

/// 10, or as many as GPUC_RANDOM_GRAPHS says.
int graphCount() {
  const char *wish = std::getenv("GPUC_RANDOM_GRAPHS");
  return wish ? std::max(1, std::atoi(wish)) : 10;
}

/// Budgets that were met or refused, and those for which something was computed again.
int budgets = 0, recomputing = 0;

class MemoryBudgetTest : public testing::TestWithParam<int> {
protected:
  MemoryBudgetTest() : text_(trainingGraph(GetParam())), random_(GetParam()) {}
  ~MemoryBudgetTest() override {
    if (!HasFailure())
      return;
    const std::string path = testing::TempDir() + "memory_budget_" + std::to_string(GetParam()) + ".mlir";
    const bool written = writeFileAtomically(path, text_).ok();
    ADD_FAILURE() << "seed " << GetParam() << (written ? ": " + path : ":\n" + text_);
  }

  struct Compiled {
    int64_t peakBytes = 0;
    double nanoseconds = 0;
    std::string tradeoff;
  };

  Result<Compiled> compile(std::optional<int64_t> budget) {
    Compiler compiler;
    CompilerOptions options;
    options.target = "host";
    options.memoryBudget = budget;
    options.tradeoff = !budget;
    options.train.checkpoint = budget ? kBudgetPolicy.str() : "none";
    GPUC_ASSIGN_OR_RETURN(auto module, compiler.parse(text_, "graph.mlir"));
    GPUC_RETURN_IF_ERROR(
        compiler.advance(*module, Stage::plan, options, [](mlir::PassManager &) { return okStatus(); }));
    const StepWork work = stepWorkOf(*module, kHostDescription);
    recomputing += work.recomputed > 0;
    return Compiled{peakOf(*module), work.nanoseconds, compiler.tradeoff()};
  }

  std::vector<int64_t> drawBudgets(int64_t least, int64_t most) {
    std::vector<int64_t> drawn;
    for (int i = 0; i < 4; ++i) {
      const double share = 1.2 * std::ldexp(static_cast<double>(random_() >> 11), -53) - 0.1;
      drawn.push_back(least + static_cast<int64_t>(share * static_cast<double>(most - least)));
    }
    std::sort(drawn.rbegin(), drawn.rend());
    return drawn;
  }

  std::string text_;
  std::mt19937_64 random_;
};

TEST_P(MemoryBudgetTest, IsKept) {
  Result<Compiled> plain = compile(std::nullopt);
  ASSERT_TRUE(plain.ok()) << plain.message();
  llvm::Expected<llvm::json::Value> curve = llvm::json::parse(plain->tradeoff);
  ASSERT_TRUE(static_cast<bool>(curve));
  const int64_t least = *curve->getAsArray()->back().getAsObject()->getInteger("peak_bytes");
  EXPECT_LE(least, plain->peakBytes);

  // Not the plain one, if another betters it.
  Result<Compiled> widest = compile(2 * plain->peakBytes);
  ASSERT_TRUE(widest.ok()) << widest.message();
  Compiled before = *widest;
  EXPECT_LE(before.nanoseconds, plain->nanoseconds);
  std::optional<int64_t> trained;
  for (int64_t budget : drawBudgets(least, plain->peakBytes)) {
    Result<Compiled> fits = compile(budget);
    ++budgets;
    ASSERT_EQ(fits.ok(), budget >= least) << budget << ", least " << least << ": " << fits.message();
    if (!fits.ok())
      continue;
    EXPECT_LE(fits->peakBytes, budget);
    EXPECT_LE(fits->peakBytes, before.peakBytes) << budget;
    EXPECT_GE(fits->nanoseconds, before.nanoseconds) << budget;
    before = *fits;
    trained = budget;
  }
  if (!trained)
    trained = least;
  Result<Verdict> verdict = judgeTraining(text_, {{3}, {3, false, kBudgetPolicy.str(), trained}});
  ASSERT_TRUE(verdict.ok()) << verdict.message();
  EXPECT_EQ(verdict->fault, "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, MemoryBudgetTest, testing::Range(0, graphCount()),
                         [](const auto &info) { return std::to_string(info.param); });

/// Budgets that nothing has to be done for would say little.
class BudgetCoverage : public testing::Environment {
  void TearDown() override {
    std::printf("%d budgets, %d plans that compute something again\n", budgets, recomputing);
    EXPECT_GE(recomputing, budgets / 4);
  }
};

[[maybe_unused]] testing::Environment *coverage =
    testing::AddGlobalTestEnvironment(new BudgetCoverage); // which owns it

} // namespace
} // namespace gpuc::gradients
