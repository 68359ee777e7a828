//===- Report.cpp - What the compiler knows of a plan, as JSON --------------===//

#include "passes/report/Report.h"

#include "dialects/plan/PlanOps.h"
#include "passes/Passes.h"
#include "passes/base/Decisions.h"
#include "passes/base/Locations.h"
#include "passes/base/Target.h"
#include "passes/plan/PinnedBytes.h"
#include "passes/report/KernelReport.h"
#include "passes/report/Peak.h"
#include "passes/report/WholeGradients.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace gpuc {
namespace {

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

llvm::json::Object ratesOfStep(plan::ProgramOp step, const CostModel &cost) {
  llvm::json::Object rates;
  if (!cost.rates())
    rates = ratesOf(cost.device());
  rates["source"] = sourceOf(cost);
  rates["threads"] = cost.threads();
  if (step && cost.profile()) {
    const Prediction prediction(step, cost);
    rates["profile"] = llvm::json::Object{{"file", cost.profile()->name()},
                                          {"seen_commands", prediction.seen()},
                                          {"other_commands", prediction.commands() - prediction.seen()}};
  }
  return rates;
}

StepWork workOf(plan::ProgramOp program, const CostModel &cost) {
  StepWork work;
  const Prediction prediction(program, cost);
  work.streams = llvm::range_size(program.getBody().getOps<plan::StreamOp>());
  program.walk([&](plan::CommandOpInterface command) {
    ++work.commands;
    const int64_t executions = executionsOf(command), flops = prediction.works()[command].flops;
    work.flops += executions * flops;
    if (command->hasAttr(kRecomputedAttr))
      work.recomputed += executions * flops;
    work.nanoseconds += executions * prediction.nanosecondsOf(command);
  });
  work.nanoseconds += cost.stepNanoseconds();
  return work;
}

//===----------------------------------------------------------------------===//
// Residuals
//===----------------------------------------------------------------------===//

/// What the forward pass writes, or is computed again for it, and the backward pass reads.
llvm::json::Array residualsOf(plan::ProgramOp program) {
  DenseMap<Operation *, Operation *> forwardWriter;
  DenseSet<Operation *> readByBackward;
  program.walk([&](plan::CommandOpInterface command) {
    bool backward = isBackward(command.getLoc());
    for (Value value : command.getReads())
      if (backward)
        readByBackward.insert(plan::bufferOf(value));
    for (Value value : command.getWrites())
      if (!backward)
        forwardWriter.try_emplace(plan::bufferOf(value), command);
  });
  llvm::json::Array residuals;
  for (auto buffer : program.getBody().getOps<plan::AllocOp>()) {
    Operation *writer = forwardWriter.lookup(buffer);
    if (!writer || !readByBackward.contains(buffer))
      continue;
    auto type = cast<RankedTensorType>(buffer.getType());
    residuals.push_back(
        llvm::json::Object{{"name", buffer.getName()},
                           {"shape", shapeText(type)},
                           {"bytes", ir::sizeInBytes(type)},
                           {"op", writer->getName().stripDialect()},
                           {"loc", layerName(buffer.getLoc())},
                           {"state", writer->hasAttr(kRecomputedAttr) ? "recomputed" : "kept"}});
  }
  return residuals;
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

/// What the step gathers of what the optimizer keeps: each rank makes that update, for all of the variable.
llvm::StringSet<> gatheredState(plan::ProgramOp step) {
  llvm::StringSet<> names;
  step.walk([&](plan::AllGatherOp gather) {
    for (Value share : gather.getShares())
      if (auto use = dyn_cast<plan::UseOp>(plan::bufferOf(share)))
        names.insert(use.getSymbol());
  });
  return names;
}

/// Variables that are trained and what is kept for them, by name; null where ranks share out nothing.
llvm::json::Value sharesOf(ModuleOp module, plan::ProgramOp step) {
  int64_t ranks = 0;
  llvm::json::Array owned, byRuns, updatedByAll, whole;
  const llvm::StringSet<> gathered = step ? gatheredState(step) : llvm::StringSet<>();
  for (auto variable : module.getOps<plan::VariableOp>()) {
    ranks = variable.getShards().value_or(ranks);
    const bool isState = variable.getKind() == "optimizer";
    if (variable.getOwners())
      for (StringRef name : variable.getOwnersAttr().getAsValueRange<StringAttr>())
        owned.push_back(name);
    else if (variable.getShards())
      (isState && gathered.contains(variable.getSymName()) ? updatedByAll : byRuns)
          .push_back(variable.getSymName());
    else if (isState || (variable.getKind() == "parameter" && !variable.getFrozen()))
      whole.push_back(variable.getSymName());
  }
  if (ranks == 0)
    return nullptr;
  return llvm::json::Object{{"ranks", ranks},
                            {"owned", std::move(owned)},
                            {"by_runs", std::move(byRuns)},
                            {"updated_by_all", std::move(updatedByAll)},
                            {"whole", std::move(whole)}};
}

} // namespace

std::string sourceOf(const CostModel &cost) {
  if (!cost.rates())
    return "uncalibrated";
  return "calibrated on " + cost.rates()->cpu + ", " + std::to_string(cost.threads()) +
         (cost.threads() == 1 ? " thread" : " threads");
}

llvm::json::Object ratesOf(const TargetDescription &device) {
  llvm::json::Object rates{{"command_us", device.commandNanoseconds / 1000},
                           {"flops_per_us", device.flopsPerNanosecond * 1000},
                           {"bytes_per_us", device.bytesPerNanosecond * 1000}};
  if (device.tensorFlopsPerNanosecond > 0)
    rates["tensor_flops_per_us"] = device.tensorFlopsPerNanosecond * 1000;
  return rates;
}

StepWork stepWorkOf(ModuleOp module, const CostModel &cost) {
  auto step = module.lookupSymbol<plan::ProgramOp>("train_step");
  if (!step)
    return {};
  StepWork work = workOf(step, cost);
  step.walk([&](plan::CollectiveOpInterface) { ++work.exchanges; });
  return work;
}

LogicalResult checkProfile(ModuleOp module, const CostModel &cost) {
  auto step = module.lookupSymbol<plan::ProgramOp>("train_step");
  if (!cost.profile())
    return success();
  const Location place = UnknownLoc::get(module.getContext());
  const std::string &name = cost.profile()->name();
  const std::string cure = "give what gpuc-run --profile wrote of a plan of this model";
  if (!step)
    return emitError(place) << name << ": the plan has no train_step to predict: leave --profile-in out";
  const Prediction prediction(step, cost);
  const std::string ofSizes = prediction.ofOtherSizes() > 0 ? " of these sizes" : "";
  if (prediction.seen() == 0)
    return emitError(place) << name << ": a profile of another plan, which has no command" << ofSizes
                            << " of this one's train_step: " << cure;
  // A plan that keeps other values has a few commands that differ; another model's or batch's are most.
  if (2 * prediction.seen() < prediction.commands())
    emitWarning(place) << name << ": has " << prediction.seen() << " of the " << prediction.commands()
                       << " commands of this train_step, and " << prediction.ofOtherSizes()
                       << " with other sizes: times of what it has not are predicted by rates; " << cure
                       << " and batch";
  return success();
}

FailureOr<llvm::json::Object> reportOf(ModuleOp module, const CostModel &cost) {
  auto arenas = module.getOps<plan::ArenaOp>();
  auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  if (arenas.empty() || !target)
    return module.emitError("has no plan.arena: plan-place-buffers comes before a report"), failure();
  plan::ArenaOp arena = *arenas.begin();

  FailureOr<Peak> peak = findPeak(module);
  FailureOr<llvm::json::Object> wholeGradients = wholeGradientsOf(module);
  if (failed(peak) || failed(wholeGradients))
    return failure();

  auto step = module.lookupSymbol<plan::ProgramOp>("train_step");
  StepWork work = stepWorkOf(module, cost);
  llvm::json::Object report;
  report["peak_bytes"] = static_cast<int64_t>(arena.getBytes());
  report["lower_bound_bytes"] = static_cast<int64_t>(arena.getLowerBound());
  report["by_category"] = byCategory(*peak);
  report["peak"] = describe(*peak);
  report["whole_gradients"] = std::move(*wholeGradients);
  report["pinned_bytes"] =
      target.getKind() == plan::TargetKind::cuda ? pinnedBytesOf(module, arena.getSlots()) : 0;
  report["flops"] = work.flops;
  report["recompute_flops"] = work.recomputed;
  report["commands"] = work.commands;
  report["kernels"] = llvm::range_size(module.getOps<plan::KernelOp>());
  report["streams"] = work.streams;
  report["all_reduce_buckets"] = work.exchanges;
  report["shares"] = sharesOf(module, step);
  report["predicted_step_us"] = work.nanoseconds / 1000;
  report["layout"] = decisionsIn(module, kLayoutAttr, {"layout", "from", "to", "why"});
  report["work"] = workListOf(module, cost);
  report["rates"] = ratesOfStep(step, cost);
  report["precision"] = decisionsIn(module, kPrecisionAttr, {"type", "why"});
  report["residuals"] = step ? residualsOf(step) : llvm::json::Array();
  return report;
}

} // namespace gpuc
