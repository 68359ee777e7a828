//===- FuseCost.cpp - Whether one kernel is faster than two -----------------===//

#include "passes/kernels/FuseCost.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Codegen.h"

using namespace mlir;

namespace gpuc {
namespace {

bool isCheap(Operation *op) {
  return op->hasTrait<ir::Pointwise>() &&
         isa<ir::AddOp, ir::SubOp, ir::MulOp, ir::MaxOp, ir::MinOp, ir::FmaOp, ir::NegOp, ir::AbsOp,
             ir::ReluOp, ir::ClampOp, ir::AndOp, ir::OrOp, ir::XorOp, ir::NotOp, ir::CompareOp, ir::SelectOp,
             ir::CastOp, ir::StopGradientOp>(op);
}

int64_t bytesOf(Value value) { return ir::sizeInBytes(value.getType()); }

/// What a kernel with reductions works on: rows that it folds to one element each.
struct Rows {
  ArrayRef<int64_t> shape; ///< Of what is folded.
  int64_t count, length = 1;
  bool contiguous; ///< In memory; else neighbouring rows lie side by side.

  explicit Rows(Operation *reduction)
      : shape(ir::shapeOf(reduction->getOperand(0))),
        count(ir::elementCount(reduction->getResult(0).getType())) {
    SmallVector<int64_t> folded = foldedDims(reduction);
    for (int64_t dim : folded)
      length *= shape[dim];
    contiguous = !folded.empty() && folded.back() + 1 == static_cast<int64_t>(shape.size());
  }

  bool isWhole(Value value) const { return ir::shapeOf(value) == shape; }
  /// Into how many pieces the work falls: columns side by side go into the lanes of a few vectors.
  int64_t pieces() const { return std::max<int64_t>(1, contiguous ? count : count / 64); }
};

/// The cores over which work of so many nanoseconds on one of them is spread.
double coresFor(double alone, const TargetDescription &device) {
  return std::min(static_cast<double>(device.cores), std::max(1.0, alone / device.spreadNanoseconds));
}

/// How many sweeps over a row the kernel takes: reductions that need nothing of one another share one, and so
/// do results with an element for each of the row's. On a CPU these are written behind the last reduction; on
/// a GPU beside reductions that they do not need.
int64_t sweepsOf(const KernelParts &kernel, const Rows &rows, const TargetDescription &device) {
  llvm::SmallDenseMap<Value, int64_t, 32> after; // so many sweeps is it known
  auto sweepsBefore = [&](auto &self, Value value) -> int64_t {
    if (auto known = after.find(value); known != after.end())
      return known->second;
    int64_t sweeps = 0;
    if (Operation *op = value.getDefiningOp(); op && isInlinable(op) && !op->hasTrait<ir::Pointwise>())
      for (Value operand : op->getOperands()) // of what a kernel copies
        sweeps = std::max(sweeps, self(self, operand));
    return sweeps;
  };
  int64_t most = 0;
  for (Operation *op : kernel.ops) {
    int64_t sweeps = isReduction(op);
    for (Value operand : op->getOperands())
      sweeps = std::max(sweeps, sweepsBefore(sweepsBefore, operand) + isReduction(op));
    for (Value result : op->getResults())
      after[result] = sweeps;
    most = std::max(most, sweeps);
  }
  const int64_t reductions = most;
  for (Value output : kernel.outputs)
    if (rows.isWhole(output))
      most = std::max(most, (device.boundByMemory ? after.lookup(output) : reductions) + 1);
  return most;
}

double costlyNanoseconds(Operation *op, const TargetDescription &device) {
  return static_cast<double>(ir::elementCount(op->getResult(0).getType())) * device.costlyNanoseconds;
}

} // namespace

bool isCheapToRepeat(ArrayRef<Operation *> ops) {
  constexpr size_t most = 8;
  return ops.size() <= most && llvm::all_of(ops, isCheap);
}

double kernelNanoseconds(const KernelParts &kernel, const TargetDescription &device) {
  int64_t bytes = 0, wholeRows = 0; // of the latter those that have an element for each of a row's
  auto reduction = llvm::find_if(kernel.ops, isReduction);
  std::optional<Rows> rows;
  if (reduction != kernel.ops.end())
    rows.emplace(*reduction);
  for (Value value : llvm::concat<const Value>(kernel.inputs, kernel.outputs)) {
    bytes += bytesOf(value);
    if (rows && rows->isWhole(value))
      wholeRows += bytesOf(value);
  }
  double repeated = 0;
  int64_t pieces = std::numeric_limits<int64_t>::max();
  if (rows) {
    pieces = rows->pieces();
    // What a sweep over the row leaves in the cache, the next one finds there.
    int64_t sweeps = sweepsOf(kernel, *rows, device);
    int64_t footprint = rows->contiguous ? wholeRows / std::max<int64_t>(1, rows->count) : wholeRows;
    if (footprint > device.cacheBytes)
      bytes += wholeRows * (sweeps - 1);
    // What is not kept from one sweep to the next is computed again: on a GPU, where it takes next to
    // nothing, all of it; on a CPU what is too long.
    if (rows->length * 4 > device.keptBytes)
      for (Operation *op : kernel.ops)
        if (!isReduction(op) && !isCheap(op) && rows->isWhole(op->getResult(0)))
          repeated += costlyNanoseconds(op, device) * static_cast<double>(sweeps - 1);
  }
  double alone = static_cast<double>(bytes) / device.coreBytesPerNanosecond + repeated;
  return device.commandNanoseconds + alone / std::min(static_cast<double>(pieces), coresFor(alone, device));
}

double repeatNanoseconds(ArrayRef<Operation *> ops, const TargetDescription &device) {
  double alone = 0;
  for (Operation *op : ops)
    if (!isCheap(op))
      alone += costlyNanoseconds(op, device);
  return alone / coresFor(alone, device);
}

double residualNanoseconds(Value value, const TargetDescription &device) {
  double alone = static_cast<double>(bytesOf(value)) * device.residualMoves / device.coreBytesPerNanosecond;
  return alone / coresFor(alone, device);
}

} // namespace gpuc
