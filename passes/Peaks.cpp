//===- Peaks.cpp - How much memory other plans of a model would take ---------===//

#include "passes/Peaks.h"

#include "passes/MemoryBudget.h"
#include "passes/recompute/Policy.h"

using namespace mlir;

namespace gpuc {

std::optional<int64_t> peakWith(const PipelineOptions &options, ModuleOp module, Stage from) {
  OwningOpRef<ModuleOp> copy = module.clone();
  ScopedDiagnosticHandler said(module.getContext(), [](Diagnostic &) { return success(); });
  PassManager passes(module.getContext());
  buildTrainPipeline(passes, options, from);
  buildUnprovenPlanPipeline(passes, options);
  return succeeded(passes.run(*copy)) ? std::optional(peakOf(*copy)) : std::nullopt;
}

std::optional<int64_t> peakWith(StringRef policy, ModuleOp module, PipelineOptions options, Stage from) {
  options.checkpoint = policy.str();
  return peakWith(options, module, from);
}

std::optional<int64_t> leastPeakWith(PipelineOptions options, ModuleOp model, const CostModel &cost) {
  OwningOpRef<ModuleOp> step = model.clone();
  ScopedDiagnosticHandler said(model.getContext(), [](Diagnostic &) { return success(); });
  options.checkpoint.clear(); // so far
  PassManager passes(model.getContext());
  buildTrainPipeline(passes, options, Stage::model);
  if (failed(passes.run(*step)))
    return std::nullopt;
  FailureOr<CheckpointPolicy> policy = takePolicy(kModelPolicy, *step); // one of the choices
  PlanChoices choices(*step, options, cost);
  if (failed(policy) || failed(choices.explore(policy->text())))
    return std::nullopt;
  FailureOr<TradeoffPoint> least = choices.tradeoff().least();
  return succeeded(least) ? std::optional(least->figures.peakBytes) : std::nullopt;
}

std::optional<int64_t> peakOfStep(ModuleOp step, const PipelineOptions &options) {
  OwningOpRef<ModuleOp> copy = step.clone();
  ScopedDiagnosticHandler said(step.getContext(), [](Diagnostic &) { return success(); });
  PassManager passes(step.getContext());
  buildUnprovenPlanPipeline(passes, options);
  return succeeded(passes.run(*copy)) ? std::optional(peakOf(*copy)) : std::nullopt;
}

} // namespace gpuc
