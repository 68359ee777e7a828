//===- MemoryBudget.cpp - The fastest plan that fits ----------------------------===//

#include "passes/MemoryBudget.h"

#include "dialects/gpuc/GpucOps.h"
#include "dialects/plan/PlanOps.h"
#include "passes/Pipelines.h"
#include "passes/base/WrittenAgain.h"
#include "passes/recompute/Policy.h"
#include "passes/report/Peak.h"
#include "passes/report/Report.h"
#include "runtime/base/quote.h"
#include "runtime/plan/header.h"

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

/// What no placement goes below.
static int64_t leastWorkspaceOf(ModuleOp module) {
  plan::ArenaOp arena = *module.getOps<plan::ArenaOp>().begin();
  const int64_t above = static_cast<int64_t>(arena.getBytes()) - static_cast<int64_t>(arena.getLowerBound());
  return static_cast<int64_t>(llvm::alignTo(workspaceOf(module) - above, kBufferAlignment));
}

LogicalResult PlanChoices::toPlan(ModuleOp module, bool byGreedies) {
  // What a plan is warned of, it is when it is chosen.
  ScopedDiagnosticHandler errorsAlone(module.getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  PassManager passes(module.getContext());
  passes.enableVerifier(false); // nor is it proven before
  PlanOptions options = options_;
  options.placesByGreedies = byGreedies;
  buildUnprovenPlanPipeline(passes, options);
  return passes.run(module);
}

FailureOr<PlanChoices::Module> PlanChoices::planOf(const StepChoice &choice, bool byGreedies) {
  Module plan = module_.clone();
  if (func::FuncOp step = stepOf(*plan))
    apply(choice, step);
  if (failed(toPlan(*plan, byGreedies)))
    return failure();
  return std::move(plan);
}

/// That other programs take as much ends the exploration: the answer to it is to be exact.
FailureOr<PlanFigures> PlanChoices::tryPlan(const StepChoice &choice) {
  if (placesAll_)
    return place(choice);
  FailureOr<PlanFigures> figures = figuresOf(choice, /*byGreedies=*/true);
  const bool mayBeLeast = succeeded(figures) && !figures->isPlaced && figures->othersTakeAsMuch;
  return mayBeLeast ? place(choice) : figures;
}

FailureOr<PlanFigures> PlanChoices::place(const StepChoice &choice) {
  return figuresOf(choice, /*byGreedies=*/false);
}

FailureOr<PlanFigures> PlanChoices::figuresOf(const StepChoice &choice, bool byGreedies) {
  const bool isFirst = !around_;
  FailureOr<Module> plan = isFirst ? planOf(choice, byGreedies) : planOfStep(choice, byGreedies);
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
  const int64_t least = leastWorkspaceOf(**plan), workspace = byGreedies ? least : workspaceOf(**plan);
  const int64_t ofOthers = isFirst ? 0 : *workspaceOfOthers_;
  const StepWork work = stepWorkOf(**plan, cost_);
  return PlanFigures{*around_ + std::max(workspace, ofOthers), work.nanoseconds, work.recomputed,
                     /*othersTakeAsMuch=*/workspace <= ofOthers,
                     /*isPlaced=*/!byGreedies || workspaceOf(**plan) == least};
}

/// Most of the work is spared by a plan of the step alone: the plans of the other programs hang on nothing
/// that is chosen, and all of them lie between the same variables and inputs.
FailureOr<PlanChoices::Module> PlanChoices::planOfStep(const StepChoice &choice, bool byGreedies) {
  Module plan = module_.clone();
  for (func::FuncOp entry : llvm::make_early_inc_range(plan->getOps<func::FuncOp>()))
    if (entry != stepOf(*plan))
      entry.erase();
  apply(choice, stepOf(*plan));
  if (failed(toPlan(*plan, byGreedies)))
    return failure();
  return std::move(plan);
}

FailureOr<PlanFigures> PlanChoices::tryKeepingAll() {
  func::FuncOp step = stepOf(module_);
  return place(step ? StepChoice{llvm::BitVector(StepForward(step).values().size(), true)} : StepChoice());
}

/// Which loops threads may share hangs on where buffers lie, and on that the time of a step.
static bool hasLoops(func::FuncOp step) {
  return step.walk([](ir::ScanOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

LogicalResult PlanChoices::explore(StringRef policy, bool placesAll) {
  if (func::FuncOp step = stepOf(module_); step && failed(checkGradientsAreKnown(step)))
    return failure();
  std::optional<StepForward> forward, readingFirst;
  Module copy;
  if (func::FuncOp step = stepOf(module_)) {
    placesAll_ = placesAll || hasLoops(step);
    forward.emplace(step);
    if (writesAgain(step)) {
      copy = module_.clone();
      readFirstWritten(stepOf(*copy), [](Value, Operation *) { return true; });
      readingFirst.emplace(stepOf(*copy));
    }
  }
  FailureOr<Tradeoff> tradeoff = exploreTradeoff(
      {forward ? &*forward : nullptr, readingFirst ? &*readingFirst : nullptr}, cost_, policy,
      [this](const StepChoice &choice) { return tryPlan(choice); },
      [this](const StepChoice &choice) { return place(choice); });
  if (failed(tradeoff))
    return failure();
  tradeoff_ = std::move(*tradeoff);
  return success();
}

void PlanChoices::choose(const TradeoffPoint &point) {
  chosen_ = point;
  if (func::FuncOp step = stepOf(module_))
    apply(point.choice, step);
}

LogicalResult PlanChoices::chooseWithin(int64_t bytes, StringRef budget, WaysOut waysOut) {
  FailureOr<std::optional<TradeoffPoint>> fits = tradeoff_->fastestWithin(bytes);
  if (failed(fits))
    return failure();
  if (!*fits)
    return nothingFits(bytes, budget, waysOut);
  return choose(**fits), success();
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
  const FailureOr<TradeoffPoint> least = tradeoff_->least(), fastest = tradeoff_->fastest();
  if (failed(least) || failed(fastest))
    return failure();
  FailureOr<Module> plan = planOf(least->choice);
  if (failed(plan))
    return failure();
  FailureOr<Peak> peak = findPeak(**plan);
  if (failed(peak))
    return failure();
  const std::string otherWays = waysOut(least->figures.peakBytes);
  auto error = emitError(UnknownLoc::get(module_.getContext()));
  if (bytes < *around_)
    error << "no plan fits --memory-budget=" << budget << ": variables, constants and inputs alone take "
          << *around_ << ", and the least plan that was found takes ";
  else
    error << "no plan that was found fits --memory-budget=" << budget << ": the least takes ";
  return error << least->figures.peakBytes << " (" << partsOf(*peak) << "), the fastest "
               << fastest->figures.peakBytes << "; give at least --memory-budget=" << least->figures.peakBytes
               << otherWays;
}

llvm::json::Array describe(ArrayRef<TradeoffPoint> curve, const std::optional<TradeoffPoint> &chosen) {
  llvm::json::Array list;
  for (const TradeoffPoint &point : curve)
    list.push_back(llvm::json::Object{{"peak_bytes", point.figures.peakBytes},
                                      {"predicted_step_us", point.figures.nanoseconds / 1000},
                                      {"bound_us", point.leastNanoseconds / 1000},
                                      {"recompute_flops", point.figures.recomputeFlops},
                                      {"recomputed_values", point.recomputedValues},
                                      {"recomputed_bytes", point.recomputedBytes},
                                      {"kept", point.name},
                                      {"slices_in_turn", point.choice.slicesInTurn},
                                      {"written_again", !point.choice.readsFirstWritten},
                                      {"chosen", chosen && point.choice == chosen->choice}});
  return list;
}

} // namespace gpuc
