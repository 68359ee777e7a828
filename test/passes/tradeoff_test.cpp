//===- tradeoff_test.cpp - Which plans a budget chooses from ----------------------===//
//
// A plan takes a tenth of a second or more, so that it matters how many are made.
//
//===----------------------------------------------------------------------===//

#include "passes/recompute/Exploration.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/base/WrittenAgain.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <random>

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
                                    "none", tryPlan, tryPlan);
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

/// Plans of random times and peaks, which are known when they are placed.
class Placed {
public:
  explicit Placed(unsigned seed) : random_(seed) {
    for (unsigned number = 0; number < 30; ++number) {
      TradeoffPoint point;
      point.choice.kept.resize(30);
      point.choice.kept.set(number);
      point.isPolicys = number == seed % 30;
      point.figures.nanoseconds = upTo(12);
      point.figures.isPlaced = upTo(3) == 0;
      point.choice.slicesInTurn = upTo(4) == 0;
      point.leastNanoseconds = point.figures.nanoseconds - upTo(3);
      peaks_.push_back(100 + upTo(50));
      point.figures.peakBytes = peaks_.back() - (point.figures.isPlaced ? 0 : upTo(3));
      points_.push_back(point);
    }
  }

  Tradeoff tradeoff() {
    return Tradeoff(points_, [this](const StepChoice &choice) {
      ++placed;
      const int number = choice.kept.find_first();
      PlanFigures figures = points_[number].figures;
      figures.peakBytes = peaks_[number];
      figures.isPlaced = true;
      return figures;
    });
  }

  int placed = 0;

private:
  int upTo(int most) { return std::uniform_int_distribution(0, most)(random_); }

  std::mt19937 random_;
  std::vector<TradeoffPoint> points_;
  std::vector<int64_t> peaks_;
};

TEST(Tradeoff, ABudgetGivesWhatTheCurveHasAndPlacesLess) {
  int all = 0, some = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Placed random(seed);
    const std::vector<TradeoffPoint> curve = *random.tradeoff().curve();
    for (int64_t bytes = 99; bytes <= 150; ++bytes) {
      const auto inCurve = llvm::find_if(
          curve, [bytes](const TradeoffPoint &point) { return point.figures.peakBytes <= bytes; });
      const int before = random.placed;
      const std::optional<TradeoffPoint> within = *random.tradeoff().fastestWithin(bytes);
      some += random.placed - before, all += 30;
      ASSERT_EQ(within.has_value(), inCurve != curve.end());
      if (!within)
        continue;
      EXPECT_EQ(within->choice, inCurve->choice) << seed;
      EXPECT_EQ(within->figures.peakBytes, inCurve->figures.peakBytes);
      EXPECT_EQ(within->leastNanoseconds, inCurve->leastNanoseconds);
    }
  }
  EXPECT_LT(some, all / 4);
}

TEST(Tradeoff, FindsTheLeastWhereverThePolicyStands) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Placed random(seed);
    int64_t bytes = INT64_MAX;
    for (const TradeoffPoint &point : *random.tradeoff().curve())
      bytes = std::min(bytes, point.figures.peakBytes);
    const int before = random.placed;
    EXPECT_EQ(random.tradeoff().least()->figures.peakBytes, bytes);
    EXPECT_LT(random.placed - before, 12);
  }
}

TEST(Tradeoff, TheCurveFallsInMemoryAndRisesInTimeButForThePolicy) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<TradeoffPoint> curve = *Placed(seed).tradeoff().curve();
    EXPECT_EQ(llvm::count_if(curve, [](const TradeoffPoint &point) { return point.isPolicys; }), 1);
    const TradeoffPoint *before = nullptr;
    for (const TradeoffPoint &point : curve) {
      EXPECT_TRUE(!before || before->figures.nanoseconds <= point.figures.nanoseconds);
      EXPECT_LE(point.leastNanoseconds, point.figures.nanoseconds);
      if (before && point.figures.peakBytes >= before->figures.peakBytes) {
        EXPECT_TRUE(point.isPolicys);
        continue;
      }
      EXPECT_TRUE(!before || before->leastNanoseconds <= point.leastNanoseconds)
          << "what bounds more memory bounds less";
      before = &point;
    }
  }
}

} // namespace
} // namespace gpuc
