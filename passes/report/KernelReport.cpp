//===- KernelReport.cpp - What each command of a plan does, as JSON -----------===//

#include "passes/report/KernelReport.h"

#include "passes/base/Locations.h"
#include "passes/base/WrittenAgain.h"
#include "passes/plan/CommandGraph.h"
#include "passes/report/MethodReport.h"
#include "passes/report/TraceName.h"
#include "passes/report/Traffic.h"
#include "runtime/plan/command_name.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <map>
#include <vector>

using namespace mlir;

namespace gpuc {

/// What follows each element of a product: an addition, a maximum, relu's gradient.
static SmallVector<StringRef> epilogueOf(plan::ProductOpInterface product) {
  SmallVector<StringRef> ops;
  if (product.getBias())
    ops.push_back(ir::AddOp::getOperationName());
  if (product.getRelu())
    ops.push_back(ir::ReluOp::getOperationName());
  if (product.getMask())
    ops.append({ir::CompareOp::getOperationName(), ir::SelectOp::getOperationName()});
  return ops;
}

int64_t executionsOf(plan::CommandOpInterface command) { return llvm::product_of(tripCountsAround(command)); }

//===----------------------------------------------------------------------===//
// Predictions
//===----------------------------------------------------------------------===//

Prediction::Prediction(plan::ProgramOp program, const CostModel &cost)
    : cost_(cost), works_(program->getParentOfType<ModuleOp>()) {
  if (cost.rates())
    if (auto traffic = trafficOf(program, cost.rates()->caches, works_); succeeded(traffic))
      traffic_ = std::move(*traffic);
  program.walk([&](plan::ParallelOp parallel) {
    if (cost.threads() > 1 && isWorthAFork(parallel))
      forked_.insert(parallel);
  });
  if (cost.profile() && program.getSymName() == "train_step")
    findSeen(program, *cost.profile());
}

/// As a trace counts them: of its operands, whatever of them it reads.
static int64_t bytesOf(plan::CommandOpInterface command) {
  int64_t bytes = 0;
  for (Value value :
       llvm::concat<Value>(llvm::to_vector(command.getReads()), llvm::to_vector(command.getWrites())))
    bytes += plan::rangeOf(value).size;
  return bytes;
}

/// A profile has the events of one thread: of the parts of a parallel those that it took. All others it has
/// as often as the step ran, which is how often it has those that it has most often.
void Prediction::findSeen(plan::ProgramOp program, const Profile &profile) {
  std::map<Profile::Key, double> executions;
  std::vector<std::pair<plan::CommandOpInterface, Profile::Key>> named;
  program.walk([&](plan::CommandOpInterface command) {
    if (std::string name = traceNameOf(command); !name.empty())
      named.emplace_back(command, Profile::Key(std::move(name), bytesOf(command)));
  });
  commands_ = static_cast<int64_t>(named.size());
  for (const auto &[command, key] : named)
    executions[key] += static_cast<double>(executionsOf(command));
  double steps = 0;
  for (const auto &[key, times] : executions)
    if (const Profile::Command *seen = profile.find(key))
      steps = std::max(steps, static_cast<double>(seen->events) / times);
  for (const auto &[command, key] : named)
    if (const Profile::Command *seen = profile.find(key))
      seen_[command] = seen->nanoseconds * static_cast<double>(seen->events) / (executions.at(key) * steps);
    else
      ofOtherSizes_ += profile.hasName(key.first);
}

/// To 1/1024 ns: sums of these are exact, whatever the order of commands.
static double rounded(double nanoseconds) { return std::round(nanoseconds * 1024) / 1024; }

double Prediction::nanosecondsOf(plan::CommandOpInterface command) const {
  auto seen = seen_.find(command);
  return rounded(seen == seen_.end() ? reckoned(command) : seen->second);
}

double Prediction::alone(plan::CommandOpInterface command) const {
  Work work = works_[command];
  if (auto bytes = traffic_.find(command); bytes != traffic_.end())
    llvm::copy(bytes->second, &work[Unit::near]);
  return cost_.aloneNanoseconds(work);
}

/// As the runtime does: by its parts where that is better than command by command.
bool Prediction::isWorthAFork(plan::ParallelOp parallel) const {
  double byParts = cost_.forkNanoseconds(), oneByOne = 0;
  parallel.walk([&](plan::CommandOpInterface command) {
    if (isa<plan::LoopOpInterface>(*command))
      return;
    const double times =
        static_cast<double>(executionsOf(command)) / static_cast<double>(executionsOf(parallel));
    const double nanoseconds = alone(command);
    byParts += times * cost_.inPartsNanoseconds(nanoseconds, parallel.getParts());
    oneByOne += times * cost_.sharedNanoseconds(nanoseconds, works_[command].parts);
  });
  return byParts < oneByOne;
}

double Prediction::reckoned(plan::CommandOpInterface command) const {
  if (isa<plan::ParallelOp>(*command))
    return forked_.contains(command) ? cost_.forkNanoseconds() : 0;
  if (auto loop = dyn_cast<plan::LoopOpInterface>(*command))
    return static_cast<double>(loop.getTripCount()) * cost_.iterationNanoseconds();
  if (auto around = command->getParentOfType<plan::ParallelOp>(); forked_.contains(around))
    return cost_.inPartsNanoseconds(alone(command), around.getParts());
  return cost_.sharedNanoseconds(alone(command), works_[command].parts);
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

/// Calls `visit` for each op that computes something, those of a launch's segments too.
static void forEachOp(plan::KernelOp kernel, llvm::function_ref<void(Operation &)> visit) {
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<ir::FusedOp>(op) && !op->hasTrait<OpTrait::IsTerminator>())
      visit(*op);
  });
}

/// What a kernel computes: each op of its body once, by its mnemonic. Constants and repetitions of what it
/// reads are named only where there is nothing else.
static llvm::json::Array opsOf(plan::KernelOp kernel) {
  llvm::SetVector<StringRef> names, others;
  forEachOp(kernel, [&](Operation &op) {
    (isa<ir::ConstantOp, ir::BroadcastOp>(op) ? others : names).insert(op.getName().stripDialect());
  });
  return llvm::json::Array((names.empty() ? others : names).getArrayRef());
}

/// The layers of a kernel's ops: several, where what one layer ends with and another begins with is one
/// kernel.
static llvm::json::Array layersOf(plan::KernelOp kernel) {
  SmallVector<std::string> layers;
  forEachOp(kernel, [&](Operation &op) {
    if (std::string layer = layerName(op.getLoc()); !layer.empty() && !llvm::is_contained(layers, layer))
      layers.push_back(layer);
  });
  return llvm::json::Array(layers);
}

/// The kernels of the forward pass whose results a kernel writes again, so that they are not kept.
static llvm::json::Array namesWrittenAgain(plan::LaunchOp launch) {
  llvm::json::Array names;
  if (auto kernels = launch->getAttrOfType<ArrayAttr>(kWritesAgainAttr))
    for (Attribute kernel : kernels)
      if (auto name = dyn_cast<StringAttr>(kernel))
        names.push_back(name.getValue());
  return names;
}

/// As gpuc-run's traces name a product.
static std::string shapeOf(plan::MatmulOp matmul) {
  return MatmulName{
      .batch = matmul.getBatch(), .m = matmul.getM(), .n = matmul.getN(), .k = matmul.getK(), .epilogue = {}}
      .shape();
}

/// What a product's command computes, as a kernel's.
static llvm::json::Array opsOf(plan::ProductOpInterface product, plan::KernelOp update) {
  llvm::json::Array ops{product->getName().stripDialect()};
  for (StringRef name : epilogueOf(product))
    ops.push_back(name.split('.').second);
  if (update)
    for (const llvm::json::Value &name : opsOf(update))
      ops.push_back(name);
  return ops;
}

/// A kernel's own name; else that of what is written.
static std::string nameOf(plan::CommandOpInterface command) {
  if (auto launch = dyn_cast<plan::LaunchOp>(*command))
    return launch.getKernel().str();
  SmallVector<Value> writes = llvm::to_vector(command.getWrites());
  auto buffer = writes.empty() ? plan::AllocOp() : dyn_cast<plan::AllocOp>(*plan::bufferOf(writes.front()));
  return buffer ? buffer.getName().str() : "";
}

static llvm::json::Object describe(plan::ProgramOp program, plan::CommandOpInterface command,
                                   const Prediction &prediction) {
  const Work work = prediction.works()[command];
  plan::KernelOp kernel = prediction.works().kernelOf(command);
  llvm::json::Object entry{{"entry", program.getSymName()},
                           {"kind", command->getName().stripDialect()},
                           {"name", nameOf(command)},
                           {"layer", layerName(command.getLoc())},
                           {"backward", isBackward(command.getLoc())},
                           {"bytes_read", work.bytesRead},
                           {"bytes_written", work.bytesWritten},
                           {"flops", work.flops},
                           {"executions", executionsOf(command)},
                           {"predicted_us", prediction.nanosecondsOf(command) / 1000}};
  if (auto launch = dyn_cast<plan::LaunchOp>(*command)) {
    entry["ops"] = opsOf(kernel);
    entry["layers"] = layersOf(kernel);
    entry["writes_again"] = namesWrittenAgain(launch);
  }
  if (auto product = dyn_cast<plan::ProductOpInterface>(*command))
    entry["ops"] = opsOf(product, kernel);
  if (auto matmul = dyn_cast<plan::MatmulOp>(*command))
    entry["shape"] = shapeOf(matmul);
  describeMethod(command, entry);
  return entry;
}

llvm::json::Array workListOf(ModuleOp module, const CostModel &cost) {
  llvm::json::Array list;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    const Prediction prediction(program, cost);
    program.walk<WalkOrder::PreOrder>([&](plan::CommandOpInterface command) {
      if (isa<plan::LaunchOp, ir::CostOpInterface>(*command))
        list.push_back(describe(program, command, prediction));
    });
  }
  return list;
}

} // namespace gpuc
