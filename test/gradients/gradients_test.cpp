//===- gradients_test.cpp - Derivatives against central differences ----------===//
//
// With step h the difference quotient (f(x + h) - f(x - h)) / 2h is off by h² f''' / 6 and by about ε |f| / h
// from rounding. Inputs, values and derivatives are of size 1, so that h = 10⁻⁵ makes both about 10⁻¹¹: far
// below the tolerance of 10⁻⁶, and a step too small to cross a kink that the inputs keep away from.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Fixture.h"

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/StringSet.h"

#include <random>

using namespace mlir;

namespace gpuc::gradients {
namespace {

constexpr double step = 1e-5, tolerance = 1e-6;

class GradientTest : public CaseTest {
protected:
  /// The gradient of a function's scalar result by the differentiated inputs, by central differences.
  std::vector<Tensor> differences(ModuleOp module, StringRef function, std::vector<Tensor> arguments) {
    std::vector<Tensor> gradients;
    for (int64_t input : differentiated(GetParam())) {
      Tensor gradient(arguments[input].type);
      for (int64_t i = 0; i < gradient.size(); ++i) {
        double &x = arguments[input].elements[i].real;
        const double at = x;
        x = at + step;
        double above = interpret(module, function, arguments)[0].at(0);
        x = at - step;
        double below = interpret(module, function, arguments)[0].at(0);
        x = at;
        gradient.elements[i].real = (above - below) / (2 * step);
      }
      gradients.push_back(gradient);
    }
    return gradients;
  }

  /// The module of the case after the passes.
  OwningOpRef<ModuleOp> derived(const std::string &pipeline) {
    OwningOpRef<ModuleOp> module = parse(gradientModule(GetParam()));
    if (module)
      runPasses(*module, pipeline);
    return module;
  }

  std::vector<Tensor> argumentsOf(ModuleOp module, StringRef function) {
    return makeArguments(GetParam(), lookup(module, function));
  }

  bool isTwice() const { return GetParam().derivatives == Derivatives::second; }
};

TEST_P(GradientTest, FirstDerivative) {
  OwningOpRef<ModuleOp> module = derived("gpuc-autodiff");
  ASSERT_TRUE(module && !HasFailure());
  std::vector<Tensor> arguments = argumentsOf(*module, "gradient");
  if (GetParam().derivatives != Derivatives::convention)
    return expectClose(interpret(*module, "gradient", arguments),
                       differences(*module, "objective", arguments), tolerance, "gradient and differences");
  for (reference::Element &weight : arguments.back().elements)
    weight.real = 1;
  Tensor expected(arguments[0].type, GetParam().expected);
  expectClose(interpret(*module, "gradient", arguments)[0], expected, 1e-15, "gradient and convention");
}

/// The gradient of a gradient.
using SecondGradientTest = GradientTest;

TEST_P(SecondGradientTest, SecondDerivative) {
  OwningOpRef<ModuleOp> module = derived("gpuc-autodiff");
  ASSERT_TRUE(module && !HasFailure());
  std::vector<Tensor> arguments = argumentsOf(*module, "second");
  expectClose(interpret(*module, "second", arguments), differences(*module, "directional", arguments),
              tolerance, "second derivative and differences");
}

INSTANTIATE_TEST_SUITE_P(Registry, GradientTest, testing::ValuesIn(casesWhere([](const Case &described) {
                           return described.derivatives != Derivatives::none;
                         })),
                         nameOfCase);

INSTANTIATE_TEST_SUITE_P(Registry, SecondGradientTest,
                         testing::ValuesIn(casesWhere([](const Case &described) {
                           return described.derivatives == Derivatives::second;
                         })),
                         nameOfCase);

//===----------------------------------------------------------------------===//
// Max pooling
//===----------------------------------------------------------------------===//

bool isMaxPooling(const Case &described) { return described.op == "gpuc.max_pool2d"; }

/// The indices that a model reads, and the gradient by those that it keeps.
using NarrowIndicesTest = GradientTest;

TEST_P(NarrowIndicesTest, ChangeNothing) {
  OwningOpRef<ModuleOp> wide = parse(forwardModule(GetParam(), "f64")),
                        narrow = parse(forwardModule(GetParam(), "f64"));
  ASSERT_TRUE(wide && narrow);
  runPasses(*narrow, "gpuc-narrow-indices");
  narrow->walk([](ir::MaxPool2dOp pool) {
    EXPECT_FALSE(getElementTypeOrSelf(pool.getIndices().getType()).isInteger(64));
  });
  std::vector<Tensor> arguments = makeArguments(GetParam(), lookup(*wide, "f"));
  expectClose(interpret(*wide, "f", arguments), interpret(*narrow, "f", arguments), 0, "values and indices");
  if (GetParam().derivatives == Derivatives::none)
    return;
  wide = derived("gpuc-autodiff");
  narrow = derived("gpuc-narrow-indices,gpuc-autodiff");
  arguments = argumentsOf(*wide, "gradient");
  expectClose(interpret(*wide, "gradient", arguments), interpret(*narrow, "gradient", arguments), 0,
              "gradients");
}

/// A pooling of relus, and its gradient, before and after; its indices are read by nobody.
using ReluBehindPoolingTest = DialectTest;

TEST_F(ReluBehindPoolingTest, ChangesNoNumber) {
  const char *text = R"(
func.func @f(%x: tensor<2x3x6x8xf64>) -> tensor<2x3x3x4xf64> {
  %0 = gpuc.relu %x : tensor<2x3x6x8xf64>
  %v, %i = gpuc.max_pool2d %0 window [3, 3] strides [2, 2] padding [1, 1, 1, 1] : (tensor<2x3x6x8xf64>) -> (tensor<2x3x3x4xf64>, tensor<2x3x3x4xi64>)
  return %v : tensor<2x3x3x4xf64>
}
func.func @loss(%x: tensor<2x3x6x8xf64>, %w: tensor<2x3x3x4xf64>) -> tensor<f64> {
  %v = call @f(%x) : (tensor<2x3x6x8xf64>) -> tensor<2x3x3x4xf64>
  %0 = gpuc.mul %v, %w : tensor<2x3x3x4xf64>
  %s = gpuc.sum %0 dims [0, 1, 2, 3] : (tensor<2x3x3x4xf64>) -> tensor<f64>
  return %s : tensor<f64>
}
func.func @gradient(%x: tensor<2x3x6x8xf64>, %w: tensor<2x3x3x4xf64>) -> tensor<2x3x6x8xf64> {
  %l, %g = gpuc.gradient @loss(%x, %w) wrt arguments [0] : (tensor<2x3x6x8xf64>, tensor<2x3x3x4xf64>) -> (tensor<f64>, tensor<2x3x6x8xf64>)
  return %g : tensor<2x3x6x8xf64>
})";
  OwningOpRef<ModuleOp> before = parse(text), after = parse(text);
  ASSERT_TRUE(before && after);
  runPasses(*before, "gpuc-narrow-indices,gpuc-autodiff");
  runPasses(*after, "gpuc-relu-behind-pooling,gpuc-narrow-indices,gpuc-autodiff");
  std::mt19937 random(7);
  std::normal_distribution<double> drawn(-0.8); // so that windows without a positive element are many
  std::vector<Tensor> arguments;
  for (Type type : lookup(*before, "gradient").getArgumentTypes()) {
    arguments.emplace_back(cast<RankedTensorType>(type));
    for (reference::Element &element : arguments.back().elements)
      element.real = drawn(random);
  }
  std::vector<Tensor> forward = {arguments[0]};
  expectClose(interpret(*before, "f", forward), interpret(*after, "f", forward), 0, "values");
  expectClose(interpret(*before, "gradient", arguments), interpret(*after, "gradient", arguments), 0,
              "gradients");
}

INSTANTIATE_TEST_SUITE_P(Registry, NarrowIndicesTest, testing::ValuesIn(casesWhere(isMaxPooling)),
                         nameOfCase);

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

bool isComposite(const Case &described) {
  return opHasInterface<ir::CompositeOpInterface>(sharedContext(), described.op);
}

/// An op's own derivative and that of its definition.
using CompositeGradientTest = GradientTest;

TEST_P(CompositeGradientTest, EqualsThatOfItsDefinition) {
  OwningOpRef<ModuleOp> whole = derived("gpuc-autodiff"), parts = derived("gpuc-decompose,gpuc-autodiff");
  ASSERT_TRUE(whole && parts && !HasFailure());
  std::vector<Tensor> arguments = argumentsOf(*whole, "second");
  std::vector<Tensor> first(arguments.begin(),
                            arguments.begin() + lookup(*whole, "gradient").getNumArguments());
  expectClose(interpret(*whole, "gradient", first), interpret(*parts, "gradient", first), 1e-12,
              "first derivatives");
  if (isTwice())
    expectClose(interpret(*whole, "second", arguments), interpret(*parts, "second", arguments), 1e-12,
                "second derivatives");
}

INSTANTIATE_TEST_SUITE_P(Registry, CompositeGradientTest,
                         testing::ValuesIn(casesWhere([](const Case &described) {
                           return described.derivatives != Derivatives::none && isComposite(described);
                         })),
                         nameOfCase);

/// What the interpreter computes from an op's description, and from its decomposition.
using CompositeValueTest = CaseTest;

TEST_P(CompositeValueTest, EqualsItsDefinition) {
  OwningOpRef<ModuleOp> whole = parse(forwardModule(GetParam(), "f64")),
                        parts = parse(forwardModule(GetParam(), "f64"));
  ASSERT_TRUE(whole && parts);
  runPasses(*parts, "gpuc-decompose");
  std::vector<Tensor> arguments = makeArguments(GetParam(), lookup(*whole, "f"));
  expectClose(interpret(*whole, "f", arguments), interpret(*parts, "f", arguments), 1e-12,
              "op and decomposition");
}

INSTANTIATE_TEST_SUITE_P(Registry, CompositeValueTest, testing::ValuesIn(casesWhere(isComposite)),
                         nameOfCase);

//===----------------------------------------------------------------------===//
// Nothing is left out
//===----------------------------------------------------------------------===//

/// Ops around which no function can be built: declarations, and what passes put functions together with.
bool isStructure(StringRef op) {
  static constexpr StringRef structure[] = {"gpuc.variable", "gpuc.read",   "gpuc.assign",
                                            "gpuc.gradient", "gpuc.recipe", "gpuc.checkpoint",
                                            "gpuc.fused",    "gpuc.yield"};
  return llvm::is_contained(structure, op);
}

TEST(RegistryTest, HasACaseForEveryOp) {
  for (RegisteredOperationName op : sharedContext()->getRegisteredOperationsByDialect("gpuc")) {
    std::string name = op.getStringRef().str();
    if (isStructure(name))
      continue;
    std::vector<Case> cases = casesWhere([&](const Case &described) { return described.op == name; });
    EXPECT_FALSE(cases.empty()) << name << " has no case in test/gradients";
    if (op.hasInterface<ir::DifferentiableOpInterface>())
      EXPECT_TRUE(llvm::any_of(
          cases, [](const Case &described) { return described.derivatives != Derivatives::none; }))
          << name << " is differentiable, but no case in test/gradients differentiates it";
  }
}

/// Else a case that was renamed would stand for another.
TEST(RegistryTest, NamesCasesOnce) {
  llvm::StringSet<> names;
  for (const Case &described : registry())
    EXPECT_TRUE(names.insert(described.testName()).second) << described.testName();
}

/// A case that does not hold the op that it names would let the op go untested.
TEST(RegistryTest, HoldsTheOpThatItNames) {
  for (const Case &described : registry())
    EXPECT_NE(described.body.find(described.op + " "), std::string::npos) << described.testName();
}

} // namespace
} // namespace gpuc::gradients
