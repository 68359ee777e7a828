//===- kernels_test.cpp - A device against the interpreter -------------------===//
//
// Each case goes through the whole compiler (decomposed, fused, placed, emitted) and runs on the device under
// test (DeviceRun.h). The interpreter computes in f64 from the same inputs; the device may be off by 64 · ε ·
// Σ|terms|, where the terms are what an element is added up from. For sums, products and what moves elements,
// f(|x|) is that sum. For functions the result itself is the scale; where one adds up something larger
// inside, the case says how large (Case::inner). Integers and i1 must be equal.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/DeviceRun.h"
#include "test/gradients/Fixture.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;

namespace gpuc::gradients {
namespace {

double epsilonOf(Type element) {
  return std::ldexp(1, 1 - static_cast<int>(llvm::cast<FloatType>(element).getFPMantissaWidth()));
}

double smallestNormal(Type element) {
  return APFloat::getSmallestNormalized(llvm::cast<FloatType>(element).getFloatSemantics()).convertToDouble();
}

double finite(double x) { return std::isfinite(x) ? std::abs(x) : 0; }

class KernelTest : public CaseTest {
protected:
  void SetUp() override {
    static const Status found = findTestDevice();
    if (!found.ok())
      GTEST_SKIP() << found.message();
  }

  void compare(const std::string &element) {
    std::string text = forwardModule(GetParam(), element);
    OwningOpRef<ModuleOp> module = parse(text);
    ASSERT_TRUE(module);
    func::FuncOp f = lookup(*module, "f");
    std::vector<Tensor> arguments = makeArguments(GetParam(), f);
    for (Type type : f.getResultTypes())
      types_.push_back(llvm::cast<RankedTensorType>(type));
    auto results = runOnDevice(text, arguments, types_);
    if (!results.ok() && results.message().find("cannot be compiled for cuda yet") != std::string::npos)
      GTEST_SKIP() << results.message();
    ASSERT_TRUE(results.ok()) << results.message() << "\n" << text;
    std::vector<Tensor> expected = evaluate(f, arguments), terms = evaluate(f, magnitudes(arguments));
    ASSERT_FALSE(HasFailure());
    for (size_t i = 0; i < types_.size(); ++i)
      expectWithin((*results)[i], expected[i], terms[i]);
    if (HasFailure())
      ADD_FAILURE() << text;
  }

private:
  /// Half precision rounds so coarsely that each rounding must be followed.
  std::vector<Tensor> evaluate(func::FuncOp f, ArrayRef<Tensor> arguments) {
    reference::Interpreter interpreter = makeInterpreter(&context_);
    bool isHalf = llvm::any_of(types_, [](RankedTensorType type) {
      return llvm::isa<FloatType>(type.getElementType()) && type.getElementTypeBitWidth() == 16;
    });
    interpreter.precision = isHalf ? reference::Precision::typed : reference::Precision::exact;
    auto results = interpreter.run(f, arguments);
    if (results.ok())
      return std::move(*results);
    ADD_FAILURE() << results.message();
    return {};
  }

  static std::vector<Tensor> magnitudes(std::vector<Tensor> tensors) {
    for (Tensor &tensor : tensors)
      if (tensor.isFloat())
        for (reference::Element &element : tensor.elements)
          element.real = std::abs(element.real);
    return tensors;
  }

  void expectWithin(const Tensor &results, const Tensor &expected, const Tensor &terms) {
    for (int64_t i = 0; i < results.size(); ++i) {
      if (!results.isFloat()) {
        ASSERT_EQ(results.elements[i].integer, expected.elements[i].integer) << "element " << i;
        continue;
      }
      Type type = results.type.getElementType();
      double found = results.at(i), wanted = reference::rounded(expected.at(i), type);
      double scale = finite(wanted) + finite(terms.at(i)) + GetParam().inner;
      double bound = 64 * epsilonOf(type) * scale + smallestNormal(type); // subnormals have no ε
      bool same = found == wanted || (std::isnan(found) && std::isnan(wanted));
      ASSERT_TRUE(same || std::abs(found - wanted) <= bound)
          << "element " << i << " is " << found << ", expected " << wanted << " within " << bound;
    }
  }

  std::vector<RankedTensorType> types_;
};

TEST_P(KernelTest, F32) { compare("f32"); }

INSTANTIATE_TEST_SUITE_P(Registry, KernelTest, testing::ValuesIn(registry()), nameOfCase);

/// Whether the case is another one in each type; others name types of their own, and are run once.
bool isOfAnyType(const Case &described) {
  return forwardModule(described, "f32") != forwardModule(described, "f64");
}

using DoubleKernelTest = KernelTest;

TEST_P(DoubleKernelTest, F64) { compare("f64"); }

INSTANTIATE_TEST_SUITE_P(Registry, DoubleKernelTest, testing::ValuesIn(casesWhere(isOfAnyType)), nameOfCase);

//===----------------------------------------------------------------------===//
// Half precision
//===----------------------------------------------------------------------===//

using HalfKernelTest = KernelTest;

TEST_P(HalfKernelTest, F16) { compare("f16"); }
TEST_P(HalfKernelTest, BF16) { compare("bf16"); }

/// Whether the case's function is right where $T is a type of 16 bits. Where sums or statistics are f32 it is
/// not: such ops have cases named after the type.
bool holdsInHalf(const Case &described) {
  ScopedDiagnosticHandler quiet(sharedContext(), [](Diagnostic &) { return success(); });
  return described.name != "f16" && described.name != "bf16" &&
         parseSourceString<ModuleOp>(forwardModule(described, "f16"), sharedContext());
}

INSTANTIATE_TEST_SUITE_P(Registry, HalfKernelTest, testing::ValuesIn(casesWhere([](const Case &described) {
                           return isOfAnyType(described) && holdsInHalf(described);
                         })),
                         nameOfCase);

TEST(HalfRegistryTest, HasACaseForEveryOp) {
  for (std::string element : {"f16", "bf16"}) {
    llvm::StringSet<> real, found;
    for (const Case &described : registry()) {
      if (llvm::any_of(described.inputs, [](const Input &input) { return input.isReal(); }))
        real.insert(described.op);
      if (!found.contains(described.op) && (described.name == element || holdsInHalf(described)))
        found.insert(described.op);
    }
    for (const auto &op : real)
      EXPECT_TRUE(found.contains(op.getKey()))
          << op.getKey().str() << " has no case in " << element << " in test/gradients";
  }
}

} // namespace
} // namespace gpuc::gradients
