//===- running_error_test.cpp - Bounds of rounding errors, by hand -----------===//

#include "test/reference/Interpreter.h"
#include "test/reference/RunningError.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;

namespace gpuc::reference {
namespace {

constexpr double kUnit = 0x1p-18; // 64 · 2^-24

class RunningErrorTest : public testing::Test {
protected:
  RunningErrorTest() { context_.loadDialect<ir::GpucDialect, func::FuncDialect>(); }

  /// The terms of what `body` returns, a tensor of `type`, of %a and %b: tensors of f32 with these values.
  std::vector<double> terms(ArrayRef<double> a, ArrayRef<double> b, const std::string &body,
                            const std::string &type) {
    const std::string operand = "tensor<" + std::to_string(a.size()) + "xf32>";
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>("func.func @f(%a: " + operand + ", %b: " + operand + ") -> " + type +
                                        " {\n" + body + "\nreturn %y : " + type + "\n}",
                                    &context_);
    Interpreter interpreter;
    interpreter.countsTerms = true;
    auto function = module->lookupSymbol<func::FuncOp>("f");
    auto operandType = cast<RankedTensorType>(function.getArgumentTypes()[0]);
    auto results = interpreter.run(function, {Tensor(operandType, a), Tensor(operandType, b)});
    EXPECT_TRUE(results.ok()) << results.message();
    std::vector<double> found;
    for (const Element &element : results->front().elements)
      found.push_back(element.terms);
    return found;
  }

  MLIRContext context_;
};

using Terms = std::vector<double>;

TEST_F(RunningErrorTest, CancellationKeepsTheTerms) {
  // 3 + 2.5 of the operands, and 0.5 of the difference's own rounding.
  EXPECT_EQ(terms({3}, {2.5}, "%y = gpuc.sub %a, %b : tensor<1xf32>", "tensor<1xf32>"), Terms{6});
}

TEST_F(RunningErrorTest, ProductsScaleTheOtherOperand) {
  // |a| · A(b) + A(a) · |b| + |y|, and what both errors together may do.
  EXPECT_EQ(terms({3}, {-2}, "%y = gpuc.mul %a, %b : tensor<1xf32>", "tensor<1xf32>"), Terms{18 + 6 * kUnit});
}

TEST_F(RunningErrorTest, SumsAddTerms) {
  EXPECT_EQ(terms({3, -2, 4}, {0, 0, 0}, "%y = gpuc.sum %a dims [0] : (tensor<3xf32>) -> tensor<f32>",
                  "tensor<f32>"),
            Terms{9 + 5});
}

TEST_F(RunningErrorTest, MatrixProductsAreSumsOfProducts) {
  std::string body = "%m = gpuc.reshape %a : tensor<2xf32> to tensor<1x2xf32>\n"
                     "%n = gpuc.reshape %b : tensor<2xf32> to tensor<2x1xf32>\n"
                     "%y = gpuc.matmul %m, %n : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>";
  // Σ|a||b| = 3·2 + 5·1, twice, and once more by the unit; the result is 1.
  EXPECT_EQ(terms({3, 5}, {2, -1}, body, "tensor<1x1xf32>"), Terms{11 + 11 + 11 * kUnit + 1});
}

TEST_F(RunningErrorTest, FunctionsScaleBySlope) {
  Terms found = terms({0.5}, {0}, "%y = gpuc.tanh %a : tensor<1xf32>", "tensor<1xf32>");
  const double y = std::tanh(0.5);
  EXPECT_NEAR(found[0], (1 - y * y) * 0.5 + y, 1e-5);
}

TEST_F(RunningErrorTest, ZerosThatReluMakesAreExact) {
  EXPECT_EQ(terms({-1, 2}, {0, 0}, "%y = gpuc.relu %a : tensor<2xf32>", "tensor<2xf32>"), (Terms{0, 4}));
}

TEST_F(RunningErrorTest, AComparisonNearATieIsUnsure) {
  const double near = 1 + kUnit, far = 1 + 3 * kUnit;
  EXPECT_EQ(terms({1, 1, 1}, {1, near, far}, "%y = gpuc.compare lt %a, %b : tensor<3xf32>", "tensor<3xi1>"),
            (Terms{0, INFINITY, 0}));
}

TEST_F(RunningErrorTest, AnUnsureChoiceMayBeOffByTheDistance) {
  const double near = 1 + kUnit;
  std::string body = "%c = gpuc.compare lt %a, %b : tensor<1xf32>\n%z = gpuc.constant 0.0 : tensor<1xf32>\n"
                     "%y = gpuc.select %c, %b, %z : tensor<1xi1>, tensor<1xf32>";
  EXPECT_EQ(terms({1}, {near}, body, "tensor<1xf32>"), Terms{near + near / kUnit});
}

TEST_F(RunningErrorTest, NothingIsKnownBeyondAPole) {
  EXPECT_EQ(terms({1}, {0}, "%s = gpuc.sub %a, %a : tensor<1xf32>\n%y = gpuc.div %b, %s : tensor<1xf32>",
                  "tensor<1xf32>"),
            Terms{0}); // 0 / 0 is NaN, whatever the error
  std::string body = "%s = gpuc.sub %a, %b : tensor<1xf32>\n%y = gpuc.div %a, %s : tensor<1xf32>";
  EXPECT_EQ(terms({1}, {1 + kUnit}, body, "tensor<1xf32>"), Terms{INFINITY});
}

TEST_F(RunningErrorTest, TheLargestIsOneOfThoseThatMayBe) {
  std::string body = "%y = gpuc.reduce_max %a dims [0] : (tensor<3xf32>) -> tensor<f32>";
  EXPECT_EQ(terms({-9, 1, 2}, {0, 0, 0}, body, "tensor<f32>"), Terms{2});
}

TEST_F(RunningErrorTest, CompositesHaveNoRule) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n%y = gpuc.softmax %a dim 0 : tensor<2xf32>\n"
      "return %y : tensor<2xf32>\n}",
      &context_);
  Interpreter interpreter;
  interpreter.countsTerms = true;
  auto function = module->lookupSymbol<func::FuncOp>("f");
  auto results =
      interpreter.run(function, {Tensor(cast<RankedTensorType>(function.getArgumentTypes()[0]), {1, 2})});
  EXPECT_EQ(results.message(),
            "'gpuc.softmax' has no rule for its rounding error: decompose composite ops first");
}

} // namespace
} // namespace gpuc::reference
