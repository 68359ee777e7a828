//===- order_zoo_test.cpp - plan-order on the models of the zoo --------------===//
//
// No plan takes more memory in the order of plan-order than as gpuc-to-plan gives it, nor than by list
// scheduling, written down here once more, in which the commands that leave least live come first, or those
// that free something. Figures of docs/memory.md are printed.
//
//===----------------------------------------------------------------------===//

#include "frontend/models/Zoo.h"
#include "passes/Compiler.h"
#include "passes/Passes.h"
#include "passes/ordering/Solver.h"
#include "passes/plan/OrderProblem.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace gpuc {
namespace {

/// Of the commands whose predecessors have run, the one that leaves the fewest bytes live, or the first if
/// only what frees something may overtake.
ordering::Order listSchedule(const ordering::Problem &problem, bool onlyWhatFrees) {
  const size_t count = problem.commands.size();
  std::vector<size_t> usesLeft(problem.buffers.size()), uses;
  for (const ordering::Command &command : problem.commands)
    for (size_t buffer : command.buffers)
      ++usesLeft[buffer];
  uses = usesLeft;
  std::vector<char> isDone(count);
  ordering::Order order;
  while (order.size() < count) {
    std::optional<std::pair<int64_t, size_t>> best;
    for (size_t command = 0; command < count; ++command) {
      if (isDone[command] || !llvm::all_of(problem.commands[command].predecessors,
                                           [&](size_t before) { return isDone[before]; }))
        continue;
      int64_t growth = 0;
      for (size_t buffer : problem.commands[command].buffers) {
        if (usesLeft[buffer] == uses[buffer])
          growth += problem.buffers[buffer].bytes;
        if (usesLeft[buffer] == 1 && !problem.buffers[buffer].to_end)
          growth -= problem.buffers[buffer].bytes;
      }
      if (onlyWhatFrees)
        growth = std::min<int64_t>(growth, 0);
      if (!best || growth < best->first)
        best = {growth, command};
    }
    for (size_t buffer : problem.commands[best->second].buffers)
      --usesLeft[buffer];
    isDone[best->second] = true;
    order.push_back(best->second);
  }
  return order;
}

/// Each loop, innermost first, then the program: in the best of the given order and the two schedules.
void scheduleByList(OrderProblems &problems, Block &block) {
  for (auto loop : block.getOps<plan::LoopOpInterface>())
    scheduleByList(problems, loop.getCommands());
  const CommandGraph graph(commandsOf(block));
  const ordering::Problem problem = problems.of(graph, block);
  ordering::Order best = ordering::givenOrder(problem);
  for (bool onlyWhatFrees : {false, true}) {
    ordering::Order order = listSchedule(problem, onlyWhatFrees);
    if (ordering::peakOf(problem, order) < ordering::peakOf(problem, best))
      best = std::move(order);
  }
  for (size_t command : best)
    graph.commands[command]->moveBefore(&block, block.end());
  for (plan::OutputOp output : llvm::to_vector(block.getOps<plan::OutputOp>()))
    output->moveBefore(&block, block.end());
}

/// Of the placement, with plan-order or without.
int64_t lowerBoundOf(ModuleOp commands, bool isOrdered) {
  OwningOpRef<ModuleOp> module = commands.clone();
  PassManager passes(module->getContext());
  if (isOrdered)
    passes.addPass(createOrderPass());
  passes.addPass(createAssignStreamsPass());
  passes.addPass(createPlaceBuffersPass());
  passes.addPass(createVerifyPlanPass());
  EXPECT_TRUE(succeeded(passes.run(*module)));
  return (*module->getOps<plan::ArenaOp>().begin()).getLowerBound();
}

/// How far the step's peak is, at the most, above that of the best order of its commands.
double atMostOfOptimum(ModuleOp commands) {
  auto step = commands.lookupSymbol<plan::ProgramOp>("train_step");
  OrderProblems problems(commands, step);
  Block &block = step.getBody().front();
  const ordering::Solution solution = ordering::solve(problems.of(CommandGraph(commandsOf(block)), block));
  return static_cast<double>(solution.peak) / static_cast<double>(std::max<int64_t>(1, solution.bound));
}

using Recipe = std::vector<std::pair<std::string, std::string>>;

struct Case {
  std::string model;
  std::vector<std::string> keys;
};

void check(const Case &zooCase, const std::string &target, Recipe recipe) {
  Result<nn::Model> model = models::buildZooModel(zooCase.model, zooCase.keys);
  ASSERT_TRUE(model.ok()) << model.message();
  Compiler compiler;
  auto module = compiler.parse(model->text(), "model.mlir");
  ASSERT_TRUE(module.ok()) << module.message();
  CompilerOptions options;
  options.target = target;
  options.train.recipe = std::move(recipe);
  Status status =
      compiler.advance(**module, Stage::trainStep, options, [](PassManager &) { return okStatus(); });
  ASSERT_TRUE(status.ok()) << status.message();
  PassManager passes((*module)->getContext());
  passes.addPass(createToPlanPass({target}));
  ASSERT_TRUE(succeeded(passes.run(**module)));

  const int64_t given = lowerBoundOf(**module, false), ordered = lowerBoundOf(**module, true);
  const double atMost = atMostOfOptimum(**module);
  for (auto program : (*module)->getOps<plan::ProgramOp>()) {
    OrderProblems problems(**module, program);
    scheduleByList(problems, program.getBody().front());
  }
  const int64_t listed = lowerBoundOf(**module, false);
  EXPECT_LE(ordered, std::min(given, listed)) << zooCase.model << " for " << target;
  std::printf(
      "%-18s %-11s given %12ld  of it: by lists %.4f, ordered %.4f; the step at most %.4f of the optimum\n",
      zooCase.model.c_str(), target.c_str(), static_cast<long>(given), static_cast<double>(listed) / given,
      static_cast<double>(ordered) / given, atMost);
}

const std::vector<std::string> kText = {"layers=4",      "heads=2",     "width=16", "length=24",
                                        "vocabulary=50", "dropout=0.1", "batch=4"};
const Case kSmallZoo[] = {
    {"linear-regression", {"batch=9"}},
    {"mlp", {"hidden=24,24,24", "dropout=0.2", "batch=33"}},
    {"convnet", {"size=16", "batch=5"}},
    {"rnn-classifier",
     {"cell=gru", "steps=6", "width=8", "hidden=24", "layers=2", "dropout=0.2", "batch=18"}},
    {"lstm-generator", {"embedding=8", "hidden=16", "length=8", "dropout=0.2", "batch=12"}},
    {"transformer", {"width=16", "heads=2", "layers=2", "feedforward=32", "length=20", "batch=3"}},
    {"resnet18", {"size=40", "width=8", "classes=7", "batch=4"}},
    {"resnet50", {"size=64", "width=4", "classes=7", "batch=4"}},
    {"gpt2", kText},
};

TEST(OrderZoo, SmallModelsAreNeverAboveTheGivenOrderOrAList) {
  for (const Case &zooCase : kSmallZoo) {
    for (const Recipe &recipe : {Recipe{}, {{"clip_norm", "1"}}, {{"accumulate", "2"}}})
      check(zooCase, "host", recipe);
    check(zooCase, "cuda:sm_90", {});
  }
}

TEST(OrderZoo, NorAreThoseOfDefaultSizes) {
  for (const Case &zooCase : kSmallZoo)
    check({zooCase.model, {}}, "host", {});
}

} // namespace
} // namespace gpuc
