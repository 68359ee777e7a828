//===- tradeoff_test.cpp - Which plans a budget chooses from ----------------------===//
//
// A plan takes a tenth of a second or more, so that it matters how many are made.
//
//===----------------------------------------------------------------------===//

#include "passes/recompute/Tradeoff.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/base/WrittenAgain.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace gpuc {
namespace {

constexpr int kLayers = 50; // more values than are searched exactly, which takes seconds

/// Layers of a product and an exponential, which a kernel of the backward pass writes again for the weight's
/// gradient.
std::string stepText() {
  const std::string type = "tensor<64x64xf32>", two = "(" + type + ", " + type + ") -> ";
  const std::string backward = " loc(fused<\"backward\">[\"layer\"])\n";
  std::string forward, back, variables, seed = "%x";
  auto text = [](const std::string &prefix, int layer) { return prefix + std::to_string(layer); };
  for (int layer = 1; layer <= kLayers; ++layer) {
    const std::string before = layer == 1 ? "%x" : text("%a", layer - 1);
    variables += text("gpuc.variable @w", layer) + " : " + type + " init ones\n";
    forward += text("%w", layer) + text(" = gpuc.read @w", layer) + " : " + type + " loc(\"layer\")\n" +
               text("%h", layer) + " = gpuc.matmul " + before + text(", %w", layer) + " : " + two + type +
               " loc(\"layer\")\n" + text("%a", layer) + text(" = gpuc.fused \"act", layer) + "\"(" +
               text("%h", layer) + ") : (" + type + ") -> " + type + " {\n^bb0(%in: " + type +
               "):\n%0 = gpuc.exp %in : " + type + " loc(\"layer\")\ngpuc.yield %0 : " + type +
               "\n} loc(\"layer\")\n";
  }
  for (int layer = kLayers; layer >= 1; --layer) {
    const std::string cotangent = layer == kLayers ? text("%a", kLayers) : text("%d", layer + 1);
    back += text("%b", layer) + ":2 = gpuc.fused \"back" + std::to_string(layer) + "\"(" + cotangent +
            text(", %h", layer) + text(") {gpuc.written_again = [[0, \"act", layer) + "\", 0]]} : " + two +
            "(" + type + ", " + type + ") {\n^bb0(%in: " + type + ", %other: " + type +
            "):\n%0 = gpuc.exp %other : " + type + "\n%1 = gpuc.mul %in, %0 : " + type +
            "\ngpuc.yield %0, %1 : " + type + ", " + type + "\n}" + backward + text("%g", layer) +
            " = gpuc.matmul transpose " + text("%b", layer) + "#0, " + text("%b", layer) + "#1 : " + two +
            type + backward + text("gpuc.assign @w", layer) + text(", %g", layer) + " : " + type + backward +
            text("%d", layer) + " = gpuc.matmul " + text("%b", layer) + "#1, transpose " + text("%w", layer) +
            " : " + two + type + backward;
  }
  return "func.func @train_step(%x: " + type +
         " {gpuc.name = \"x\"}) -> (tensor<f32> {gpuc.name = \"loss_sum\"}) {\n" + forward +
         "%loss = gpuc.sum " + text("%a", kLayers) + " dims [0, 1] : (" + type + ") -> tensor<f32>\n" + back +
         "return %loss : tensor<f32>\n}\n" + variables;
}

/// Plans that are made for the step, in both forms or in one.
class Trials {
public:
  Trials(bool bothForms, bool othersTakeAsMuch) : othersTakeAsMuch_(othersTakeAsMuch) {
    MLIRContext context;
    context.loadDialect<ir::GpucDialect, func::FuncDialect>();
    auto module = parseSourceString<ModuleOp>(stepText(), &context);
    if (!module) {
      ADD_FAILURE() << "does not parse";
      return;
    }
    OwningOpRef<ModuleOp> copy = module->clone();
    auto stepOf = [](ModuleOp in) { return in.lookupSymbol<func::FuncOp>("train_step"); };
    EXPECT_TRUE(writesAgain(stepOf(*copy)));
    readFirstWritten(stepOf(*copy), [](Value, Operation *) { return true; });
    const StepForward step(stepOf(*module)), readingFirst(stepOf(*copy));
    auto tryPlan = [&](const StepChoice &choice) { return attempt(choice); };
    auto tradeoff = exploreTradeoff({&step, bothForms ? &readingFirst : nullptr}, CostModel(kHostDescription),
                                    "none", tryPlan);
    EXPECT_TRUE(succeeded(tradeoff));
  }

  int all = 0;
  int readingFirst = 0;

private:
  FailureOr<PlanFigures> attempt(const StepChoice &choice) {
    ++all;
    readingFirst += choice.readsFirstWritten;
    const int64_t kept = choice.kept.count(), dropped = choice.kept.size() - kept;
    PlanFigures figures;
    figures.peakBytes = 1000 + kept;
    figures.nanoseconds = 1e6 + 100.0 * static_cast<double>(dropped);
    figures.othersTakeAsMuch = othersTakeAsMuch_ && dropped > 0;
    return figures;
  }

  bool othersTakeAsMuch_;
};

TEST(Tradeoff, TriesEachStepOfMemoryInOneForm) {
  const Trials one(/*bothForms=*/false, false), both(/*bothForms=*/true, false);
  EXPECT_GT(one.all, 10);
  EXPECT_GT(both.readingFirst, 0);
  EXPECT_LE(both.all, one.all + 4) << "where either could be better both are tried, at the end";
}

TEST(Tradeoff, EndsWhereOtherProgramsTakeAsMuch) {
  constexpr int kPolicies = 4;
  EXPECT_LE(Trials(/*bothForms=*/false, true).all, kPolicies + 1);
  EXPECT_LE(Trials(/*bothForms=*/true, true).all, kPolicies + 1);
}

} // namespace
} // namespace gpuc
