//===- random_graphs_test.cpp - Whole graphs, before and after the passes -----===//
//
// For each seed: the graph's value and gradient, interpreted right after autodiff, against (1) a difference
// quotient along a random direction, (2) the interpreter after every pass on the way to kernels, (3) the
// host, fused (-O3) and one op at a time (-O0). Passes may round otherwise than the graph is written (a
// composite has a definition of its own), so that (2) may differ by 2^12 roundings of the largest number that
// occurs; (3) by 64 · ε · Σ|terms| of each element (test/reference/RunningError.h).
//
//===----------------------------------------------------------------------===//

#include "test/gradients/DeviceRun.h"
#include "test/gradients/Fixture.h"
#include "test/gradients/RandomGraph.h"
#include "test/gradients/TrainingReference.h"

#include <cmath>
#include <cstdlib>

using namespace mlir;

namespace gpuc::gradients {
namespace {

/// 50, or as many as GPUC_RANDOM_GRAPHS says.
int graphCount() {
  const char *wish = std::getenv("GPUC_RANDOM_GRAPHS");
  return wish ? std::max(1, std::atoi(wish)) : 50;
}

/// From derivatives to kernels, as the pipelines have them.
constexpr const char *toKernels = "canonicalize,cse,gpuc-decompose,canonicalize,cse,gpuc-fuse";

/// Leaves only functions of these names.
void keepOnly(ModuleOp module, ArrayRef<StringRef> names) {
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!llvm::is_contained(names, function.getName()))
      function.erase();
}

class RandomGraphTest : public DialectTest, public testing::WithParamInterface<int> {
protected:
  RandomGraphTest() : graph_(randomGraph(GetParam())), text_(gradientModule(graph_)) {}
  ~RandomGraphTest() override {
    if (HasFailure())
      ADD_FAILURE() << "seed " << GetParam() << "\n" << text_;
  }

  /// The module with gradients in the place of gpuc.gradient.
  OwningOpRef<ModuleOp> derived() {
    OwningOpRef<ModuleOp> module = parse(text_);
    if (module)
      runPasses(*module, "gpuc-autodiff");
    return module;
  }

  /// Interprets, and remembers the largest number that occurs.
  std::vector<Tensor> evaluate(ModuleOp module, StringRef function, ArrayRef<Tensor> arguments) {
    reference::Interpreter interpreter = makeInterpreter(&context_);
    auto results = interpreter.run(lookup(module, function), arguments);
    largest_ = std::max(largest_, interpreter.largest);
    if (results.ok())
      return std::move(*results);
    ADD_FAILURE() << results.message();
    return {};
  }

  /// What a function gives, with the tolerances of its decomposition.
  std::vector<Tensor> withTolerances(ModuleOp module, StringRef function, ArrayRef<Tensor> arguments) {
    std::vector<Tensor> values = evaluate(module, function, arguments);
    OwningOpRef<ModuleOp> decomposed = module.clone();
    runPasses(*decomposed, "gpuc-decompose");
    reference::Interpreter interpreter = makeInterpreter(&context_);
    interpreter.countsTerms = true;
    auto bounds = interpreter.run(lookup(*decomposed, function), arguments);
    EXPECT_TRUE(bounds.ok()) << bounds.message();
    for (size_t number = 0; bounds.ok() && number < values.size(); ++number)
      for (int64_t i = 0; i < values[number].size(); ++i)
        values[number].elements[i].terms = (*bounds)[number].elements[i].terms;
    return values;
  }

  std::vector<Tensor> argumentsOf(ModuleOp module, StringRef function) {
    return makeArguments(graph_, lookup(module, function));
  }

  double tolerance() const { return std::ldexp(largest_, -40); }

  Case graph_;
  std::string text_;
  double largest_ = 1;
};

TEST_P(RandomGraphTest, GradientIsTheSlope) {
  OwningOpRef<ModuleOp> module = derived();
  ASSERT_TRUE(module && !HasFailure());
  std::vector<Tensor> arguments = argumentsOf(*module, "directional");
  std::vector<Tensor> at(arguments.begin(),
                         arguments.begin() + lookup(*module, "objective").getNumArguments());
  double slope = evaluate(*module, "directional", arguments)[0].at(0);
  auto quotient = [&](double step) {
    std::vector<Tensor> above = at, below = at;
    size_t direction = at.size();
    for (int64_t input : differentiated(graph_)) {
      const Tensor &along = arguments[direction++];
      for (int64_t i = 0; i < along.size(); ++i) {
        above[input].elements[i].real += step * along.at(i);
        below[input].elements[i].real -= step * along.at(i);
      }
    }
    double difference =
        evaluate(*module, "objective", above)[0].at(0) - evaluate(*module, "objective", below)[0].at(0);
    return difference / (2 * step);
  };
  // In one of 2,000 graphs a relu changes its mind within the first of these steps.
  double wide = quotient(1e-5);
  EXPECT_NEAR(slope, std::abs(wide - slope) <= 1e-6 * largest_ ? wide : quotient(1e-6), 1e-6 * largest_);
}

TEST_P(RandomGraphTest, PassesKeepItsMeaning) {
  OwningOpRef<ModuleOp> before = derived(), after = derived();
  ASSERT_TRUE(before && after && !HasFailure());
  keepOnly(*after, {"f", "gradient", "second"}); // those without calls
  runPasses(*after, toKernels);
  ASSERT_FALSE(HasFailure());
  for (const char *function : {"f", "gradient", "second"}) {
    std::vector<Tensor> arguments = argumentsOf(*before, function);
    std::vector<Tensor> expected = evaluate(*before, function, arguments);
    expectClose(expected, evaluate(*after, function, arguments), tolerance(), std::string("@") + function);
  }
}

/// Its gradient alone, as a program.
TEST_P(RandomGraphTest, HostComputesIt) {
  OwningOpRef<ModuleOp> module = derived();
  ASSERT_TRUE(module && !HasFailure());
  std::vector<Tensor> arguments = argumentsOf(*module, "gradient");
  keepOnly(*module, {"gradient"});
  std::vector<Tensor> expected = withTolerances(*module, "gradient", arguments);
  std::vector<RankedTensorType> types;
  for (const Tensor &tensor : expected)
    types.push_back(tensor.type);

  func::FuncOp gradient = lookup(*module, "gradient");
  gradient.setName("f");
  gradient.setPublic();
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Operation &op : module->getOps())
    stream << op << "\n";
  for (int optLevel : {0, 3}) {
    auto host = runOnDevice(text, arguments, types, optLevel);
    ASSERT_TRUE(host.ok()) << host.message();
    for (auto [number, tensor] : llvm::enumerate(expected))
      EXPECT_EQ(differenceOf(tensor, (*host)[number]), "") << "result " << number << " at -O" << optLevel;
  }
}

/// Whether a kernel works row by row: it reduces more than once, or yields what is as large as what it
/// reduces.
bool isRowKernel(ir::FusedOp fused) {
  Operation *reduction = nullptr;
  for (Operation &op : fused.getBody().front())
    if (isa<ir::SumOp, ir::ReduceMaxOp>(op)) {
      if (reduction)
        return true;
      reduction = &op;
    }
  return reduction && llvm::any_of(fused.getResultTypes(), [&](Type type) {
           return cast<RankedTensorType>(type).getShape() ==
                  cast<RankedTensorType>(reduction->getOperand(0).getType()).getShape();
         });
}

/// What the tests above are worth for such kernels.
TEST_F(DialectTest, RandomGraphsReachRowKernels) {
  int found = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    OwningOpRef<ModuleOp> module = parse(gradientModule(randomGraph(seed)));
    ASSERT_TRUE(module);
    runPasses(*module, "gpuc-autodiff");
    keepOnly(*module, {"f", "gradient", "second"});
    runPasses(*module, toKernels);
    module->walk([&](ir::FusedOp fused) { found += isRowKernel(fused); });
  }
  EXPECT_GT(found, 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphTest, testing::Range(0, graphCount()),
                         [](const auto &info) { return std::to_string(info.param); });

} // namespace
} // namespace gpuc::gradients
