//===- MemoryBudget.h - The fastest plan that fits ------------------------------===//
#pragma once

#include "passes/Pipelines.h"
#include "passes/cost/CostModel.h"
#include "passes/recompute/Tradeoff.h"

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

  /// Makes plans, as far as their placement, that trade time for memory. `policy` is among them.
  mlir::LogicalResult explore(llvm::StringRef policy);

  /// The plan that keeps everything.
  mlir::FailureOr<PlanFigures> tryKeepingAll();

  /// By falling memory and rising time; only that of the policy may be worse than another in both.
  llvm::ArrayRef<TradeoffPoint> points() const { return points_; }

  /// Makes of the module what becomes the plan of the policy, or the fastest that takes at most so many
  /// bytes: computes again what that does not keep, and takes slices in turn if it does. The latter fails,
  /// with an error that tells what takes the least memory, if no plan does; `budget` is what it calls the
  /// bytes, and what `waysOut` says stands at its end.
  mlir::LogicalResult choosePolicy();
  mlir::LogicalResult chooseWithin(int64_t bytes, llvm::StringRef budget, WaysOut waysOut);

  /// The least that is predicted of a step that takes no more memory than the chosen one, in nanoseconds.
  std::optional<double> bound() const;

  /// The points, as docs/memory.md explains them.
  llvm::json::Array describe() const;

private:
  using Module = mlir::OwningOpRef<mlir::ModuleOp>;

  mlir::FailureOr<Module> planOf(const StepChoice &choice);
  mlir::FailureOr<Module> planOfStep(const StepChoice &choice);
  mlir::LogicalResult toPlan(mlir::ModuleOp module);
  mlir::FailureOr<PlanFigures> tryPlan(const StepChoice &choice);
  void choose(size_t point);
  mlir::LogicalResult nothingFits(int64_t bytes, llvm::StringRef budget, WaysOut waysOut);

  mlir::ModuleOp module_;
  PlanOptions options_;
  CostModel cost_;
  std::vector<TradeoffPoint> points_;
  size_t ofPolicy_ = 0;
  std::optional<size_t> chosen_;
  std::optional<int64_t> around_;            ///< Of the arena what is no workspace, once a plan was made.
  std::optional<int64_t> workspaceOfOthers_; ///< Of the largest program but the step; once it was asked for.
};

/// The bytes of the arena of a module at Stage::plan.
int64_t peakOf(mlir::ModuleOp module);

} // namespace gpuc
