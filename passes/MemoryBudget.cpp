//===- MemoryBudget.cpp - The fastest plan that fits ----------------------------===//

#include "passes/MemoryBudget.h"

#include "dialects/plan/PlanOps.h"
#include "passes/Pipelines.h"
#include "passes/base/WrittenAgain.h"
#include "passes/recompute/Policy.h"
#include "passes/report/Peak.h"
#include "passes/report/Report.h"
#include "runtime/base/quote.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc {

static func::FuncOp stepOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("train_step"); }

int64_t peakOf(ModuleOp module) {
  auto arenas = module.getOps<plan::ArenaOp>();
  return arenas.empty() ? 0 : (*arenas.begin()).getBytes();
}

PlanChoices::PlanChoices(ModuleOp module, PlanOptions options, const CostModel &cost)
    : module_(module), options_(std::move(options)), cost_(cost) {}

static int64_t workspaceOf(ModuleOp module) {
  plan::ArenaOp arena = *module.getOps<plan::ArenaOp>().begin();
  return static_cast<int64_t>(arena.getInputs()) - static_cast<int64_t>(arena.getWorkspace());
}

LogicalResult PlanChoices::toPlan(ModuleOp module) {
  // What a plan is warned of, it is when it is chosen.
  ScopedDiagnosticHandler errorsAlone(module.getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  PassManager passes(module.getContext());
  passes.enableVerifier(false); // nor is it proven before
  buildUnprovenPlanPipeline(passes, options_);
  return passes.run(module);
}

FailureOr<PlanChoices::Module> PlanChoices::planOf(const StepChoice &choice) {
  Module plan = module_.clone();
  if (func::FuncOp step = stepOf(*plan))
    apply(choice, step);
  if (failed(toPlan(*plan)))
    return failure();
  return std::move(plan);
}

FailureOr<PlanFigures> PlanChoices::tryPlan(const StepChoice &choice) {
  const bool isFirst = !around_;
  FailureOr<Module> plan = isFirst ? planOf(choice) : planOfStep(choice);
  if (failed(plan))
    return failure();
  if (isFirst)
    around_ = peakOf(**plan) - workspaceOf(**plan);
  if (!isFirst && !workspaceOfOthers_) {
    Module others = module_.clone();
    stepOf(*others).erase();
    if (failed(toPlan(*others)))
      return failure();
    workspaceOfOthers_ = workspaceOf(*others);
  }
  const int64_t workspace = workspaceOf(**plan), ofOthers = isFirst ? 0 : *workspaceOfOthers_;
  const StepWork work = stepWorkOf(**plan, cost_);
  return PlanFigures{*around_ + std::max(workspace, ofOthers), work.nanoseconds, work.recomputed,
                     /*othersTakeAsMuch=*/workspace <= ofOthers};
}

/// Most of the work is spared by a plan of the step alone: the plans of the other programs hang on nothing
/// that is chosen, and all of them lie between the same variables and inputs.
FailureOr<PlanChoices::Module> PlanChoices::planOfStep(const StepChoice &choice) {
  Module plan = module_.clone();
  for (func::FuncOp entry : llvm::make_early_inc_range(plan->getOps<func::FuncOp>()))
    if (entry != stepOf(*plan))
      entry.erase();
  apply(choice, stepOf(*plan));
  if (failed(toPlan(*plan)))
    return failure();
  return std::move(plan);
}

FailureOr<PlanFigures> PlanChoices::tryKeepingAll() {
  func::FuncOp step = stepOf(module_);
  return tryPlan(step ? StepChoice{llvm::BitVector(StepForward(step).values().size(), true)} : StepChoice());
}

LogicalResult PlanChoices::explore(StringRef policy) {
  if (func::FuncOp step = stepOf(module_); step && failed(checkGradientsAreKnown(step)))
    return failure();
  std::optional<StepForward> forward, readingFirst;
  Module copy;
  if (func::FuncOp step = stepOf(module_)) {
    forward.emplace(step);
    if (writesAgain(step)) {
      copy = module_.clone();
      readFirstWritten(stepOf(*copy), [](Value, Operation *) { return true; });
      readingFirst.emplace(stepOf(*copy));
    }
  }
  FailureOr<Tradeoff> tradeoff =
      exploreTradeoff({forward ? &*forward : nullptr, readingFirst ? &*readingFirst : nullptr}, cost_, policy,
                      [this](const StepChoice &choice) { return tryPlan(choice); });
  if (failed(tradeoff))
    return failure();
  points_ = std::move(tradeoff->points);
  ofPolicy_ = tradeoff->ofPolicy;
  return success();
}

void PlanChoices::choose(size_t point) {
  chosen_ = point;
  if (func::FuncOp step = stepOf(module_))
    apply(points_[point].choice, step);
}

LogicalResult PlanChoices::choosePolicy() { return choose(ofPolicy_), success(); }

LogicalResult PlanChoices::chooseWithin(int64_t bytes, StringRef budget, WaysOut waysOut) {
  for (auto [number, point] : llvm::enumerate(points_))
    if (point.figures.peakBytes <= bytes)
      return choose(number), success();
  return nothingFits(bytes, budget, waysOut);
}

/// By category, the most bytes first; and what is no variable, so that one could do something about it.
static std::string partsOf(const Peak &peak) {
  SmallVector<std::pair<int64_t, StringRef>> categories;
  const llvm::json::Object bytes = byCategory(peak);
  for (auto &[category, size] : bytes)
    if (*size.getAsInteger() > 0)
      categories.push_back({-*size.getAsInteger(), category});
  llvm::sort(categories);
  std::string text;
  for (auto &[bytes, category] : categories)
    text += (text.empty() ? "" : ", ") + category.str() + " " + std::to_string(-bytes);
  size_t named = 0;
  for (const Peak::Tensor &tensor : peak.tensors)
    if (tensor.category != "parameter" && tensor.category != "optimizer" && named < 3)
      text += (named++ == 0 ? "; in @" + peak.program + " " : ", ") + printable(tensor.name) + " of " +
              std::to_string(tensor.bytes) + (tensor.place.empty() ? "" : " at " + tensor.place);
  return text;
}

LogicalResult PlanChoices::nothingFits(int64_t bytes, StringRef budget, WaysOut waysOut) {
  const TradeoffPoint &least = points_.back();
  FailureOr<OwningOpRef<ModuleOp>> plan = planOf(least.choice);
  if (failed(plan))
    return failure();
  FailureOr<Peak> peak = findPeak(**plan);
  if (failed(peak))
    return failure();
  const std::string otherWays = waysOut(least.figures.peakBytes);
  auto error = emitError(UnknownLoc::get(module_.getContext()));
  if (bytes < *around_)
    error << "no plan fits --memory-budget=" << budget << ": variables, constants and inputs alone take "
          << *around_ << ", and the least plan that was found takes ";
  else
    error << "no plan that was found fits --memory-budget=" << budget << ": the least takes ";
  return error << least.figures.peakBytes << " (" << partsOf(*peak) << "), the fastest "
               << points_.front().figures.peakBytes
               << "; give at least --memory-budget=" << least.figures.peakBytes << otherWays;
}

std::optional<double> PlanChoices::bound() const {
  return chosen_ ? std::optional(points_[*chosen_].leastNanoseconds) : std::nullopt;
}

llvm::json::Array PlanChoices::describe() const {
  llvm::json::Array list;
  for (auto [number, point] : llvm::enumerate(points_))
    list.push_back(llvm::json::Object{{"peak_bytes", point.figures.peakBytes},
                                      {"predicted_step_us", point.figures.nanoseconds / 1000},
                                      {"bound_us", point.leastNanoseconds / 1000},
                                      {"recompute_flops", point.figures.recomputeFlops},
                                      {"recomputed_values", point.recomputedValues},
                                      {"recomputed_bytes", point.recomputedBytes},
                                      {"kept", point.name},
                                      {"slices_in_turn", point.choice.slicesInTurn},
                                      {"written_again", !point.choice.readsFirstWritten},
                                      {"chosen", chosen_ == number}});
  return list;
}

} // namespace gpuc
