//===- compile_model_test.cpp - The compiler as a function of plain data --===//

#include "passes/CompileModel.h"

#include "runtime/plan/plan.h"

#include <gtest/gtest.h>

#include <regex>

namespace gpuc {
namespace {

/// x · w, and in line 8 a function that nobody calls.
const std::string kModel = R"(gpuc.variable @w : tensor<3x2xf32> init zeros
func.func @predict(%x: tensor<?x3xf32>) -> tensor<?x2xf32> {
  %w = gpuc.read @w : tensor<3x2xf32>
  %y = gpuc.matmul %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32> loc("fc1")
  return %y : tensor<?x2xf32>
}

func.func private @left(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
)";

CompileRequest request(const std::string &text) {
  CompileRequest request{.text = text, .name = "net"};
  request.cacheFolder.clear();
  return request;
}

TEST(CompileModel, GivesAPlanItsReportAndWarningsAsData) {
  testing::internal::CaptureStderr();
  CompileRequest asked = request(kModel);
  asked.batch = 4;
  asked.seed = 7;
  Result<Compiled> compiled = compileModel(asked);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(compiled.ok()) << compiled.message();
  Result<Plan> plan = Plan::parse(compiled->plan);
  ASSERT_TRUE(plan.ok()) << plan.message();
  EXPECT_EQ(plan->info().batch, 4);
  EXPECT_EQ(plan->info().seed, 7u);
  EXPECT_NE(compiled->report.find("\"peak_bytes\""), std::string::npos);
  ASSERT_EQ(compiled->warnings.size(), 1u);
  const Diagnosis &warning = compiled->warnings[0];
  EXPECT_NE(warning.text.find("left"), std::string::npos) << warning.text;
  EXPECT_EQ(warning.file, "net");
  EXPECT_EQ(warning.line, 8);
}

/// What is wrong with the model where `from` is `to`; the error is its text behind `place`.
Diagnosis wrongWith(const std::string &from, const std::string &to, const std::string &place) {
  Diagnosis wrong;
  Result<Compiled> compiled = compileModel(request(std::regex_replace(kModel, std::regex(from), to)), &wrong);
  EXPECT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.message(), place + wrong.text);
  return wrong;
}

TEST(CompileModel, SaysWhereAnErrorIs) {
  Diagnosis wrong = wrongWith("return %y : .*", "return %x : tensor<?x3xf32>", "net:5:3: ");
  EXPECT_EQ(wrong.file, "net");
  EXPECT_EQ(wrong.line, 5);
  EXPECT_EQ(wrong.column, 3);
  EXPECT_EQ(wrong.layer, "");

  wrong = wrongWith("3x2xf32", "4x2xf32", "layer fc1: ");
  EXPECT_EQ(wrong.layer, "fc1");
  EXPECT_EQ(wrong.file, "");
  EXPECT_EQ(wrong.line, 0);
}

TEST(CompileModel, AnErrorOfNoPlaceIsTextAlone) {
  CompileRequest asked = request(kModel);
  for (auto [change, text] :
       {std::pair<void (*)(CompileRequest &), const char *>{[](CompileRequest &r) { r.batch = 0; },
                                                            "batch is 0"},
        {[](CompileRequest &r) { r.memoryBudget = -1; }, "budget is -1"},
        {[](CompileRequest &r) { r.target = "abacus"; }, "abacus"},
        {[](CompileRequest &r) { r.checkpoint = "some"; }, "some"},
        {[](CompileRequest &r) { r.recipe = {{"optimizer", "sgdd"}}; }, "optimizer: "}}) {
    CompileRequest changed = asked;
    change(changed);
    Diagnosis wrong;
    Result<Compiled> compiled = compileModel(changed, &wrong);
    ASSERT_FALSE(compiled.ok()) << text;
    EXPECT_NE(wrong.text.find(text), std::string::npos) << wrong.text;
    EXPECT_EQ(compiled.message(), wrong.text);
    EXPECT_EQ(wrong.file + wrong.layer, "");
    EXPECT_EQ(wrong.line, 0);
  }
}

} // namespace
} // namespace gpuc
