//===- MemoryBudget.h - The fastest plan that fits ------------------------------===//
#pragma once

#include "passes/Pipelines.h"
#include "passes/cost/CostModel.h"
#include "passes/recompute/Exploration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/JSON.h"

namespace gpuc {

/// Plans that a module at Stage::trainStep could become for a target, by what they keep.
class PlanChoices {
public:
  using WaysOut = llvm::function_ref<std::string(int64_t least)>;

  /// The module stays as it is until one is chosen. Times are predicted by `cost`.
  PlanChoices(mlir::ModuleOp module, PlanOptions options, const CostModel &cost);

  /// Makes plans that trade time for memory. `policy` is among them. `placesAll`: as a curve wants them.
  mlir::LogicalResult explore(llvm::StringRef policy, bool placesAll = false);

  /// Of those that were explored.
  Tradeoff &tradeoff() { return *tradeoff_; }

  /// The plan that keeps everything.
  mlir::FailureOr<PlanFigures> tryKeepingAll();

  /// Makes of the module what becomes the plan of a point, or of the fastest that takes at most so many
  /// bytes: computes again what that does not keep, and takes slices in turn if it does. The latter fails,
  /// with an error that tells what takes the least memory, if no plan does; `budget` is what it calls the
  /// bytes, and what `waysOut` says stands at its end.
  void choose(const TradeoffPoint &point);
  mlir::LogicalResult chooseWithin(int64_t bytes, llvm::StringRef budget, WaysOut waysOut);

  /// What was chosen.
  const std::optional<TradeoffPoint> &chosen() const { return chosen_; }

private:
  using Module = mlir::OwningOpRef<mlir::ModuleOp>;

  mlir::FailureOr<Module> planOf(const StepChoice &choice, bool byGreedies = false);
  mlir::FailureOr<Module> planOfStep(const StepChoice &choice, bool byGreedies);
  mlir::LogicalResult toPlan(mlir::ModuleOp module, bool byGreedies = false);
  mlir::FailureOr<PlanFigures> tryPlan(const StepChoice &choice);
  mlir::FailureOr<PlanFigures> place(const StepChoice &choice);
  mlir::FailureOr<PlanFigures> figuresOf(const StepChoice &choice, bool byGreedies);
  mlir::LogicalResult nothingFits(int64_t bytes, llvm::StringRef budget, WaysOut waysOut);

  mlir::ModuleOp module_;
  PlanOptions options_;
  CostModel cost_;
  bool placesAll_ = false;
  std::optional<Tradeoff> tradeoff_;
  std::optional<TradeoffPoint> chosen_;
  std::optional<int64_t> around_;            ///< Of the arena what is no workspace, once a plan was made.
  std::optional<int64_t> workspaceOfOthers_; ///< Of the largest program but the step; once it was asked for.
};

/// Points of a curve, as docs/memory.md explains them.
llvm::json::Array describe(llvm::ArrayRef<TradeoffPoint> curve, const std::optional<TradeoffPoint> &chosen);

/// The bytes of the arena of a module at Stage::plan.
int64_t peakOf(mlir::ModuleOp module);

} // namespace gpuc
