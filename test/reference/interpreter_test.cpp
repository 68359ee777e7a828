//===- interpreter_test.cpp - The oracle against numbers worked out by hand --===//

#include "dialects/gpuc/GpucOps.h"
#include "test/reference/Interpreter.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;

namespace gpuc::reference {
namespace {

class InterpreterTest : public testing::Test {
protected:
  InterpreterTest() { context_.loadDialect<ir::GpucDialect, func::FuncDialect>(); }

  /// Runs @f of the module without arguments.
  Result<std::vector<Tensor>> run(const std::string &text) {
    module_ = parseSourceString<ModuleOp>(text, &context_);
    if (!module_)
      return Status::error("the module does not parse");
    return interpreter_.run(module_->lookupSymbol<func::FuncOp>("f"), {});
  }

  /// The one result of @f with this body, which defines %y.
  std::vector<double> evaluate(const std::string &body, const std::string &type) {
    auto results = run("func.func @f() -> " + type + " {\n" + body + "\nreturn %y : " + type + "\n}");
    if (!results.ok()) {
      ADD_FAILURE() << results.status().message();
      return {};
    }
    std::vector<double> values;
    for (int64_t i = 0; i < (*results)[0].size(); ++i)
      values.push_back((*results)[0].at(i));
    return values;
  }

  MLIRContext context_;
  OwningOpRef<ModuleOp> module_;
  Interpreter interpreter_;
};

using Values = std::vector<double>;

TEST_F(InterpreterTest, IntegersDivideTowardZeroAndNeverTrap) {
  EXPECT_EQ(evaluate("%a = gpuc.constant dense<[7, -7, 5, -2147483648]> : tensor<4xi32>\n"
                     "%b = gpuc.constant dense<[2, 2, 0, -1]> : tensor<4xi32>\n"
                     "%y = gpuc.div %a, %b : tensor<4xi32>",
                     "tensor<4xi32>"),
            (Values{3, -3, 0, -2147483648.0}));
}

TEST_F(InterpreterTest, IntegersWrapInTheirOwnWidth) {
  EXPECT_EQ(evaluate("%a = gpuc.constant dense<[200, 255]> : tensor<2xui8>\n"
                     "%y = gpuc.add %a, %a : tensor<2xui8>",
                     "tensor<2xui8>"),
            (Values{144, 254})); // 400 - 256, 510 - 256
}

TEST_F(InterpreterTest, MaxGivesNaNIfEitherIs) {
  Values y = evaluate("%a = gpuc.constant dense<[1.0, 0x7FF8000000000000, 3.0]> : tensor<3xf64>\n"
                      "%b = gpuc.constant dense<[2.0, 2.0, 0x7FF8000000000000]> : tensor<3xf64>\n"
                      "%y = gpuc.max %a, %b : tensor<3xf64>",
                      "tensor<3xf64>");
  EXPECT_EQ(y[0], 2);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
}

TEST_F(InterpreterTest, CastsSaturate) {
  EXPECT_EQ(evaluate("%a = gpuc.constant dense<[-1.5, 300.0, 0x7FF8000000000000, 2.9]> : tensor<4xf64>\n"
                     "%y = gpuc.cast %a : tensor<4xf64> to tensor<4xui8>",
                     "tensor<4xui8>"),
            (Values{0, 255, 0, 2}));
}

TEST_F(InterpreterTest, SortKeepsTheOrderOfEquals) {
  std::string x = "%a = gpuc.constant dense<[3.0, -0.0, 0.0, 0x7FF8000000000000, 3.0]> : tensor<5xf64>\n",
              types = " : (tensor<5xf64>) -> (tensor<5xf64>, tensor<5xi64>)";
  EXPECT_EQ(evaluate(x + "%v, %y = gpuc.sort %a dim 0" + types, "tensor<5xi64>"), (Values{1, 2, 0, 4, 3}));
  EXPECT_EQ(evaluate(x + "%v, %y = gpuc.sort %a dim 0 descending" + types, "tensor<5xi64>"),
            (Values{3, 0, 4, 1, 2}));
  Values y = evaluate(x + "%y, %i = gpuc.sort %a dim 0" + types, "tensor<5xf64>");
  EXPECT_EQ((Values{y[2], y[3]}), (Values{3, 3}));
  EXPECT_TRUE(std::signbit(y[0]) && !std::signbit(y[1]) && std::isnan(y[4]));
}

TEST_F(InterpreterTest, TopKTakesTheFirstOfEquals) {
  std::string x = "%a = gpuc.constant dense<[[1, 5, 5], [7, 0, 7]]> : tensor<2x3xi32>\n",
              types = " : (tensor<2x3xi32>) -> (tensor<2x1xi32>, tensor<2x1xi64>)";
  EXPECT_EQ(evaluate(x + "%y, %i = gpuc.top_k %a k 1 dim 1" + types, "tensor<2x1xi32>"), (Values{5, 7}));
  EXPECT_EQ(evaluate(x + "%v, %y = gpuc.top_k %a k 1 dim 1" + types, "tensor<2x1xi64>"), (Values{1, 0}));
  EXPECT_EQ(evaluate(x + "%v, %y = gpuc.top_k %a k 1 dim 1 smallest" + types, "tensor<2x1xi64>"),
            (Values{0, 1}));
}

TEST_F(InterpreterTest, GatherGivesZeroOutOfRange) {
  EXPECT_EQ(evaluate("%a = gpuc.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>\n"
                     "%i = gpuc.constant dense<[1, -1, 2]> : tensor<3xi32>\n"
                     "%y = gpuc.gather %a, %i dim 1 : (tensor<2x2xf64>, tensor<3xi32>) -> tensor<2x3xf64>",
                     "tensor<2x3xf64>"),
            (Values{2, 0, 0, 4, 0, 0}));
}

TEST_F(InterpreterTest, ScatterAddAddsWhereIndicesRepeat) {
  EXPECT_EQ(evaluate("%z = gpuc.constant 10.0 : tensor<3xf64>\n"
                     "%i = gpuc.constant dense<[2, 2, 5]> : tensor<3xi64>\n"
                     "%u = gpuc.constant dense<[1.0, 2.0, 4.0]> : tensor<3xf64>\n"
                     "%y = gpuc.scatter_add %z, %i, %u dim 0 : "
                     "(tensor<3xf64>, tensor<3xi64>, tensor<3xf64>) -> tensor<3xf64>",
                     "tensor<3xf64>"),
            (Values{10, 10, 13}));
}

TEST_F(InterpreterTest, PadPutsValuesAroundAndBetween) {
  EXPECT_EQ(evaluate("%a = gpuc.constant dense<[1.0, 2.0]> : tensor<2xf64>\n"
                     "%y = gpuc.pad %a low [1] high [2] interior [1] {value = 9.0 : f64} : "
                     "(tensor<2xf64>) -> tensor<6xf64>",
                     "tensor<6xf64>"),
            (Values{9, 1, 9, 2, 9, 9}));
}

TEST_F(InterpreterTest, DynamicSliceClampsItsStart) {
  EXPECT_EQ(
      evaluate("%a = gpuc.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>\n"
               "%s = gpuc.constant dense<[9]> : tensor<1xi32>\n"
               "%y = gpuc.dynamic_slice %a, %s sizes [2] : (tensor<4xf64>, tensor<1xi32>) -> tensor<2xf64>",
               "tensor<2xf64>"),
      (Values{3, 4}));
}

TEST_F(InterpreterTest, MatmulTransposes) {
  // lhsᵀ = [1 3; 2 4], so that (1·5 + 3·6, 2·5 + 4·6).
  EXPECT_EQ(evaluate("%a = gpuc.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>\n"
                     "%b = gpuc.constant dense<[[5.0, 6.0]]> : tensor<1x2xf64>\n"
                     "%y = gpuc.matmul transpose %a, transpose %b : (tensor<2x2xf64>, tensor<1x2xf64>) -> "
                     "tensor<2x1xf64>",
                     "tensor<2x1xf64>"),
            (Values{23, 34}));
}

TEST_F(InterpreterTest, EmptyReductions) {
  EXPECT_EQ(evaluate("%a = gpuc.constant 3.0 : tensor<2x0xf64>\n"
                     "%y = gpuc.prod %a dims [1] : (tensor<2x0xf64>) -> tensor<2xf64>",
                     "tensor<2xf64>"),
            (Values{1, 1}));
}

TEST_F(InterpreterTest, CrossEntropyLeavesOutRowsWithoutAClass) {
  // Row 0: log(1 + e) - 1 with the label at the larger logit; row 1 is ignored.
  Values y = evaluate(
      "%x = gpuc.constant dense<[[0.0, 1.0], [5.0, 7.0]]> : tensor<2x2xf64>\n"
      "%l = gpuc.constant dense<[1, -100]> : tensor<2xi32>\n"
      "%y, %n = gpuc.cross_entropy %x, %l : (tensor<2x2xf64>, tensor<2xi32>) -> (tensor<f64>, tensor<f64>)",
      "tensor<f64>");
  EXPECT_NEAR(y[0], std::log(1 + std::exp(1.0)) - 1, 1e-15);
}

TEST_F(InterpreterTest, RandomBitsAreRandom123s) {
  // Known answer of philox4x32-10 at counter 0 and key 0, from Random123's kat_vectors.
  EXPECT_EQ(
      evaluate("%z = gpuc.constant 0 : tensor<i64>\n"
               "%y = gpuc.random_bits seed %z step %z id 0 : (tensor<i64>, tensor<i64>) -> tensor<4xi32>",
               "tensor<4xi32>"),
      (Values{0x6627e8d5, static_cast<int32_t>(0xe169c58d), static_cast<int32_t>(0xbc57ac4c),
              static_cast<int32_t>(0x9b00dbd8)}));
}

TEST_F(InterpreterTest, AdamsFirstStepIsTheLearningRate) {
  // In step 1 both corrections cancel: w - lr · g / |g|, up to ε.
  Values y =
      evaluate("%w = gpuc.constant dense<[1.0, 1.0]> : tensor<2xf64>\n"
               "%g = gpuc.constant dense<[0.5, -4.0]> : tensor<2xf64>\n"
               "%m = gpuc.constant 0.0 : tensor<2xf64>\n"
               "%t = gpuc.constant 1 : tensor<i64>\n"
               "%lr = gpuc.constant 0.125 : tensor<f64>\n"
               "%y, %m1, %v1 = gpuc.adam_update %w gradient %g moments %m, %m step %t lr %lr "
               "{beta1 = 0.9, beta2 = 0.999, eps = 0.0, weight_decay = 0.0} : (tensor<2xf64>, tensor<2xf64>, "
               "tensor<2xf64>, tensor<2xf64>, tensor<i64>, tensor<f64>) -> (tensor<2xf64>, tensor<2xf64>, "
               "tensor<2xf64>)",
               "tensor<2xf64>");
  EXPECT_NEAR(y[0], 0.875, 1e-15);
  EXPECT_NEAR(y[1], 1.125, 1e-15);
}

TEST_F(InterpreterTest, AdafactorsFirstStepIsOfTheSizeOfTheWeight) {
  // Squares 1, 4; 4, 16 are of rank 1: rows of mean 2.5 and 10, columns of 2.5 and 10, over 6.25. Each
  // element of the direction is ±1, and a step of 0.01 · RMS(w) = 0.02 follows.
  Values y = evaluate("%w = gpuc.constant 2.0 : tensor<2x2xf64>\n"
                      "%g = gpuc.constant dense<[[1.0, -2.0], [2.0, 4.0]]> : tensor<2x2xf64>\n"
                      "%r = gpuc.constant 7.0 : tensor<2x1xf64>\n"
                      "%c = gpuc.constant 7.0 : tensor<1x2xf64>\n"
                      "%t = gpuc.constant 1 : tensor<i64>\n"
                      "%lr = gpuc.constant 0.01 : tensor<f64>\n"
                      "%y, %r1, %c1 = gpuc.adafactor_update %w gradient %g variances %r, %c step %t lr %lr "
                      "{beta2_decay = -0.8, eps1 = 1.0e-16, eps2 = 1.0e-3, d = 1.0, weight_decay = 0.0} : "
                      "(tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x1xf64>, tensor<1x2xf64>, tensor<i64>, "
                      "tensor<f64>) -> (tensor<2x2xf64>, tensor<2x1xf64>, tensor<1x2xf64>)",
                      "tensor<2x2xf64>");
  for (auto [found, expected] : llvm::zip_equal(y, Values{1.98, 2.02, 1.98, 1.98}))
    EXPECT_NEAR(found, expected, 1e-15);
}

TEST_F(InterpreterTest, MuonMovesSingularValuesTowardsOne) {
  // A diagonal stays one; s ← 3.4445 s - 4.775 s³ + 2.0315 s⁵ of each entry of (4, 3) / 5, then a step of 1.
  Values y = evaluate(
      "%w = gpuc.constant 0.0 : tensor<2x2xf64>\n"
      "%g = gpuc.constant dense<[[4.0, 0.0], [0.0, 3.0]]> : tensor<2x2xf64>\n"
      "%b = gpuc.constant 0.0 : tensor<2x2xf64>\n"
      "%lr = gpuc.constant 1.0 : tensor<f64>\n"
      "%y, %b1 = gpuc.muon_update %w gradient %g buffer %b lr %lr {momentum = 0.0, nesterov = false, "
      "ns_steps = 1 : i64, weight_decay = 0.0} : (tensor<2x2xf64>, tensor<2x2xf64>, "
      "tensor<2x2xf64>, tensor<f64>) -> (tensor<2x2xf64>, tensor<2x2xf64>)",
      "tensor<2x2xf64>");
  for (auto [found, expected] : llvm::zip_equal(y, Values{-0.97648192, 0, 0, -1.19326944}))
    EXPECT_NEAR(found, expected, 1e-6); // the norm is 5 + 1e-7
}

TEST_F(InterpreterTest, LionsStepsAreSigns) {
  // 0.5 · (1, -2, 2) + 0.5 · (-1, 1, 4) = (0, -0.5, 3): signs 0, -1, 1; decay takes a tenth of 0.5 · w.
  Values y =
      evaluate("%w = gpuc.constant 1.0 : tensor<3xf64>\n"
               "%g = gpuc.constant dense<[-1.0, 1.0, 4.0]> : tensor<3xf64>\n"
               "%m = gpuc.constant dense<[1.0, -2.0, 2.0]> : tensor<3xf64>\n"
               "%lr = gpuc.constant 0.5 : tensor<f64>\n"
               "%y, %m1 = gpuc.lion_update %w gradient %g exp_avg %m lr %lr {beta1 = 0.5, beta2 = 0.75, "
               "weight_decay = 0.1} : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<f64>) -> "
               "(tensor<3xf64>, tensor<3xf64>)",
               "tensor<3xf64>");
  for (auto [found, expected] : llvm::zip_equal(y, Values{0.95, 1.45, 0.45}))
    EXPECT_NEAR(found, expected, 1e-15);
}

TEST_F(InterpreterTest, TypedPrecisionRoundsEachResult) {
  // 1 + 2^-30 is no f32; 1 + 2^-9 no bf16.
  std::string body =
      "%a = gpuc.constant 1.0 : tensor<f32>\n%b = gpuc.constant 9.31322574615478515625e-10 : tensor<f32>\n"
      "%y = gpuc.add %a, %b : tensor<f32>";
  EXPECT_EQ(evaluate(body, "tensor<f32>"), Values{1 + 0x1p-30});
  interpreter_.precision = Precision::typed;
  EXPECT_EQ(evaluate(body, "tensor<f32>"), Values{1});
  EXPECT_EQ(
      evaluate(
          "%a = gpuc.constant 1.001953125 : tensor<f32>\n%y = gpuc.cast %a : tensor<f32> to tensor<bf16>",
          "tensor<bf16>"),
      Values{1});
  EXPECT_EQ(evaluate("%a = gpuc.constant 5.9604644775390625e-08 : tensor<f32>\n"
                     "%y = gpuc.cast %a : tensor<f32> to tensor<f16>",
                     "tensor<f16>"),
            Values{0x1p-24}); // the smallest of f16
}

TEST_F(InterpreterTest, ReadsSeeTheOldValueAndAssignsAreCollected) {
  auto type = RankedTensorType::get({}, Float64Type::get(&context_));
  interpreter_.variables["w"] = Tensor(type, {2.0});
  auto results = run("gpuc.variable @w : tensor<f64> init zeros\n"
                     "func.func @twice(%x: tensor<f64>) -> tensor<f64> {\n"
                     "  %y = gpuc.fused \"twice\"(%x) : (tensor<f64>) -> tensor<f64> {\n"
                     "  ^bb0(%a: tensor<f64>):\n"
                     "    %b = gpuc.add %a, %a : tensor<f64>\n"
                     "    gpuc.yield %b : tensor<f64>\n  }\n"
                     "  return %y : tensor<f64>\n}\n"
                     "func.func @f() -> tensor<f64> {\n"
                     "  %w = gpuc.read @w : tensor<f64>\n"
                     "  %y = call @twice(%w) : (tensor<f64>) -> tensor<f64>\n"
                     "  gpuc.assign @w, %y : tensor<f64>\n"
                     "  %again = gpuc.read @w : tensor<f64>\n"
                     "  return %again : tensor<f64>\n}");
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ((*results)[0].at(0), 2);
  EXPECT_EQ(interpreter_.assigned.at("w").at(0), 4);
}

TEST_F(InterpreterTest, NamesWhatItDoesNotKnow) {
  auto results =
      run("func.func @g(%x: tensor<f64>) -> tensor<f64> {\n  return %x : tensor<f64>\n}\n"
          "func.func @f() -> tensor<f64> {\n"
          "  %x = gpuc.constant 1.0 : tensor<f64>\n"
          "  %y, %d = gpuc.gradient @g(%x) wrt arguments [0] : (tensor<f64>) -> (tensor<f64>, tensor<f64>)\n"
          "  return %d : tensor<f64>\n}");
  ASSERT_FALSE(results.ok());
  EXPECT_NE(results.status().message().find("gpuc.gradient"), std::string::npos);
}

/// Every op of the dialect but those that only declare or that a pass removes.
TEST_F(InterpreterTest, KnowsEveryOp) {
  const llvm::StringSet<> declarations = {"gpuc.variable", "gpuc.recipe", "gpuc.checkpoint", "gpuc.gradient"};
  int known = 0;
  for (RegisteredOperationName name : context_.getRegisteredOperationsByDialect("gpuc")) {
    if (declarations.contains(name.getStringRef()))
      continue;
    EXPECT_TRUE(isInterpreted(name.getStringRef()))
        << name.getStringRef().str() << " has no case in test/reference";
    ++known;
  }
  EXPECT_GE(known, 70);
}

} // namespace
} // namespace gpuc::reference
