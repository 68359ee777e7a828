//===- Report.cpp - What the compiler knows of a plan, as JSON --------------===//

#include "passes/report/Report.h"

#include "dialects/plan/PlanOps.h"
#include "passes/Passes.h"
#include "passes/base/Decisions.h"
#include "passes/base/Locations.h"
#include "passes/base/Target.h"
#include "passes/placement/LiveBytes.h"
#include "passes/plan/Lifetimes.h"
#include "passes/plan/PinnedBytes.h"
#include "passes/report/KernelReport.h"

#include <map>

using namespace mlir;

namespace gpuc {
namespace {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

constexpr StringLiteral kCategories[] = {"parameter",  "gradient",  "optimizer",
                                         "activation", "workspace", "input"};

/// Constants are listed with the parameters: both are there from the first step to the last.
StringRef categoryName(plan::Category category) {
  return plan::stringifyCategory(category == plan::Category::constant ? plan::Category::parameter : category);
}

/// Bytes by category that are in use while a program executes one position.
struct Instant {
  std::map<StringRef, int64_t> bytes;
  int64_t total = 0;

  void add(StringRef category, int64_t size) {
    bytes[category] += size;
    total += size;
  }
};

Instant lastingBytes(ModuleOp module) {
  Instant instant;
  for (auto variable : module.getOps<plan::VariableOp>())
    instant.add(variable.getKind() == "optimizer" ? "optimizer" : "parameter",
                ir::sizeInBytes(variable.getType()));
  for (auto constant : module.getOps<plan::ConstantOp>())
    instant.add("parameter", ir::sizeInBytes(constant.getValue().getType()));
  return instant;
}

/// Where the program has the most bytes live. Buffers that lie over one another count once: what lives in one
/// place, one after the other and at times together, is one span.
int64_t peakPosition(const Lifetimes &lifetimes, int64_t positions) {
  std::map<int64_t, SmallVector<std::pair<Lifetime, int64_t>>> places;
  for (auto [buffer, lifetime] : lifetimes)
    places[*buffer.getPlace()].push_back({lifetime, ir::sizeInBytes(buffer.getType())});
  placement::LiveBytes live(positions);
  for (auto &[place, buffers] : places) {
    llvm::stable_sort(buffers, [](auto &a, auto &b) { return a.first.lower < b.first.lower; });
    int64_t end = 0;
    for (auto [lifetime, bytes] : buffers) {
      live.add(bytes, std::max(end, lifetime.lower), lifetime.upper);
      end = std::max(end, lifetime.upper);
    }
  }
  return live.peakTime();
}

/// The bytes there.
FailureOr<Instant> peakInstant(plan::ProgramOp program, int64_t slots, const Instant &lasting) {
  FailureOr<Lifetimes> lifetimes = computeLifetimes(program);
  if (failed(lifetimes))
    return failure();
  Instant base = lasting;
  for (auto input : program.getBody().getOps<plan::InputOp>())
    base.add("input", slots * ir::sizeInBytes(input.getType()));

  const int64_t position = peakPosition(*lifetimes, positionsOf(program) + 1);
  Instant peak = base;
  DenseSet<int64_t> counted;
  for (auto &[buffer, lifetime] : *lifetimes)
    if (lifetime.lower <= position && position < lifetime.upper && counted.insert(*buffer.getPlace()).second)
      peak.add(categoryName(buffer.getCategory()), ir::sizeInBytes(buffer.getType()));
  return peak;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

llvm::json::Object ratesOf(const TargetDescription &device) {
  return llvm::json::Object{{"command_us", device.commandNanoseconds / 1000},
                            {"flops_per_us", device.flopsPerNanosecond * 1000},
                            {"bytes_per_us", device.bytesPerNanosecond * 1000}};
}

StepWork workOf(plan::ProgramOp program, const TargetDescription &device) {
  StepWork work;
  work.streams = llvm::range_size(program.getBody().getOps<plan::StreamOp>());
  program.walk([&](plan::CommandOpInterface command) {
    ++work.commands;
    if (isa<plan::LoopOpInterface>(*command))
      return; // what it repeats counts
    const int64_t executions = executionsOf(command), flops = flopsOf(command);
    work.flops += executions * flops;
    if (command->hasAttr(kRecomputedAttr))
      work.recomputed += executions * flops;
    work.nanoseconds += executions * nanosecondsOf(command, device);
  });
  return work;
}

//===----------------------------------------------------------------------===//
// Residuals
//===----------------------------------------------------------------------===//

std::string shapeText(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (int64_t extent : type.getShape())
    stream << extent << 'x';
  stream << type.getElementType();
  return text;
}

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

} // namespace

StepWork stepWorkOf(ModuleOp module) {
  auto step = module.lookupSymbol<plan::ProgramOp>("train_step");
  auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  return step && target ? workOf(step, describe(target)) : StepWork();
}

FailureOr<llvm::json::Object> reportOf(ModuleOp module) {
  auto arenas = module.getOps<plan::ArenaOp>();
  auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  if (arenas.empty() || !target)
    return module.emitError("has no plan.arena: plan-place-buffers comes before a report"), failure();
  plan::ArenaOp arena = *arenas.begin();
  const TargetDescription device = describe(target);

  Instant lasting = lastingBytes(module), peak = lasting;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    FailureOr<Instant> instant = peakInstant(program, arena.getSlots(), lasting);
    if (failed(instant))
      return failure();
    if (instant->total > peak.total)
      peak = *instant;
  }
  llvm::json::Object categories;
  for (StringRef category : kCategories)
    categories[category] = peak.bytes[category];
  categories["alignment_and_gaps"] = static_cast<int64_t>(arena.getBytes()) - peak.total;

  auto step = module.lookupSymbol<plan::ProgramOp>("train_step");
  StepWork work = stepWorkOf(module);
  llvm::json::Object report;
  report["peak_bytes"] = static_cast<int64_t>(arena.getBytes());
  report["lower_bound_bytes"] = static_cast<int64_t>(arena.getLowerBound());
  report["by_category"] = std::move(categories);
  report["pinned_bytes"] =
      target.getKind() == plan::TargetKind::cuda ? pinnedBytesOf(module, arena.getSlots()) : 0;
  report["library_bytes"] = 0;
  report["flops"] = work.flops;
  report["recompute_flops"] = work.recomputed;
  report["commands"] = work.commands;
  report["kernels"] = llvm::range_size(module.getOps<plan::KernelOp>());
  report["streams"] = work.streams;
  report["all_reduce_buckets"] = 0;
  report["predicted_step_us"] = work.nanoseconds / 1000;
  report["layout"] = decisionsIn(module, kLayoutAttr, {"layout", "from", "to", "why"});
  report["work"] = workListOf(module, device);
  report["rates"] = ratesOf(device);
  report["precision"] = decisionsIn(module, kPrecisionAttr, {"type", "why"});
  report["residuals"] = step ? residualsOf(step) : llvm::json::Array();
  return report;
}

} // namespace gpuc
