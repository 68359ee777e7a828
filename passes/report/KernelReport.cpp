//===- KernelReport.cpp - What each command of a plan does, as JSON -----------===//

#include "passes/report/KernelReport.h"

#include "passes/base/Locations.h"
#include "passes/plan/CommandGraph.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace gpuc {

static plan::KernelOp kernelOf(plan::LaunchOp launch) {
  return launch->getParentOfType<ModuleOp>().lookupSymbol<plan::KernelOp>(launch.getKernelAttr());
}

static int64_t flopsOf(plan::KernelOp kernel) {
  int64_t flops = 0;
  kernel.getBody().walk([&](ir::CostOpInterface op) { flops += op.getFlops(); }); // segments too
  return flops;
}

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

int64_t flopsOf(plan::CommandOpInterface command) {
  if (auto launch = dyn_cast<plan::LaunchOp>(*command))
    return flopsOf(kernelOf(launch));
  auto cost = dyn_cast<ir::CostOpInterface>(*command);
  return cost ? cost.getFlops() : 0;
}

static int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += plan::rangeOf(value).size;
  return bytes;
}

/// Of a table no more than what is gathered from it.
static int64_t bytesReadOf(BlockArgument argument, int64_t size) {
  int64_t gathered = 0;
  for (OpOperand &use : argument.getUses()) {
    auto gather = dyn_cast<ir::GatherOp>(use.getOwner());
    if (!gather || use.get() != gather.getOperand() || use.get() == gather.getIndices())
      return size;
    gathered += ir::sizeInBytes(gather.getType());
  }
  return std::min(size, gathered);
}

int64_t bytesRead(plan::CommandOpInterface command) {
  auto launch = dyn_cast<plan::LaunchOp>(*command);
  if (!launch)
    return bytesOf(command.getReads());
  int64_t bytes = 0;
  for (auto [input, argument] :
       llvm::zip_equal(launch.getInputs(), kernelOf(launch).getBody().getArguments()))
    bytes += bytesReadOf(argument, plan::rangeOf(input).size);
  return bytes;
}

int64_t bytesWritten(plan::CommandOpInterface command) { return bytesOf(command.getWrites()); }

int64_t executionsOf(plan::CommandOpInterface command) { return llvm::product_of(tripCountsAround(command)); }

/// Products of 16 bits, and those in TF32, are computed by tensor cores, where there are some.
static double flopsPerNanosecond(plan::CommandOpInterface command, const TargetDescription &device) {
  auto product = dyn_cast<plan::ProductOpInterface>(*command);
  if (!product || device.tensorFlopsPerNanosecond == 0)
    return device.flopsPerNanosecond;
  if (product.getElement().getIntOrFloatBitWidth() == 16)
    return device.tensorFlopsPerNanosecond;
  return product.getTf32() ? device.tensorFlopsPerNanosecond / 2 : device.flopsPerNanosecond;
}

double nanosecondsOf(plan::CommandOpInterface command, const TargetDescription &device) {
  const int64_t bytes = bytesRead(command) + bytesWritten(command);
  return device.commandNanoseconds +
         std::max(flopsOf(command) / flopsPerNanosecond(command, device), bytes / device.bytesPerNanosecond);
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

/// "64x128x784", as gpuc-run's traces name a product: rows, columns, inner extent, after the batch if there
/// is one.
static std::string shapeOf(plan::MatmulOp matmul) {
  std::string shape = matmul.getBatch() == 1 ? "" : std::to_string(matmul.getBatch()) + "x";
  for (int64_t extent : {matmul.getM(), matmul.getN()})
    shape += std::to_string(extent) + "x";
  return shape + std::to_string(matmul.getK());
}

/// What a product's command computes, as a kernel's.
static llvm::json::Array opsOf(plan::ProductOpInterface product) {
  llvm::json::Array ops{product->getName().stripDialect()};
  for (StringRef name : epilogueOf(product))
    ops.push_back(name.split('.').second);
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
                                   const TargetDescription &device) {
  llvm::json::Object entry{{"entry", program.getSymName()},
                           {"kind", command->getName().stripDialect()},
                           {"name", nameOf(command)},
                           {"layer", layerName(command.getLoc())},
                           {"backward", isBackward(command.getLoc())},
                           {"bytes_read", bytesRead(command)},
                           {"bytes_written", bytesWritten(command)},
                           {"flops", flopsOf(command)},
                           {"executions", executionsOf(command)},
                           {"predicted_us", nanosecondsOf(command, device) / 1000}};
  if (auto launch = dyn_cast<plan::LaunchOp>(*command)) {
    entry["ops"] = opsOf(kernelOf(launch));
    entry["layers"] = layersOf(kernelOf(launch));
  }
  if (auto product = dyn_cast<plan::ProductOpInterface>(*command))
    entry["ops"] = opsOf(product);
  if (auto matmul = dyn_cast<plan::MatmulOp>(*command))
    entry["shape"] = shapeOf(matmul);
  return entry;
}

llvm::json::Array workListOf(ModuleOp module, const TargetDescription &device) {
  llvm::json::Array list;
  for (auto program : module.getOps<plan::ProgramOp>())
    program.walk<WalkOrder::PreOrder>([&](plan::CommandOpInterface command) {
      if (isa<plan::LaunchOp, ir::CostOpInterface>(*command))
        list.push_back(describe(program, command, device));
    });
  return list;
}

} // namespace gpuc
