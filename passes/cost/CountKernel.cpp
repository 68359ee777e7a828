//===- CountKernel.cpp - What a generated kernel does, counted -----------------===//

#include "passes/cost/Work.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Codegen.h"

#include <cmath>

using namespace mlir;

namespace gpuc {
namespace {

constexpr int64_t kLanes = 16; ///< Of four bytes in the widest vectors.

int64_t roundedUp(int64_t number) { return (number + kLanes - 1) / kLanes * kLanes; }

/// Of an op that is computed element by element.
Unit unitOf(Operation *op) {
  if (isa<ir::DivOp, ir::RemOp, ir::SqrtOp, ir::RsqrtOp>(op))
    return Unit::root;
  if (isa<ir::ExpOp, ir::Expm1Op, ir::LogOp, ir::Log1pOp, ir::TanhOp, ir::SigmoidOp>(op))
    return Unit::exponential;
  if (isa<ir::ErfOp, ir::SinOp, ir::CosOp, ir::TanOp, ir::AtanOp, ir::PowOp>(op))
    return Unit::special;
  if (isa<ir::RandomBitsOp>(op))
    return Unit::draw;
  if (isa<ir::TransposeOp>(op))
    return Unit::transpose;
  return Unit::simple;
}

/// Whether it folds elements that lie side by side.
bool foldsRows(Operation *op) {
  if (!isReduction(op))
    return false;
  const SmallVector<int64_t> folded = foldedDims(op);
  const int64_t rank = static_cast<int64_t>(ir::shapeOf(op->getOperand(0)).size());
  return !folded.empty() && folded.back() + 1 == rank;
}

bool isEnd(Operation *op) { return op->hasTrait<OpTrait::IsTerminator>(); }

/// Of the ops of one kernel that share a loop.
class Counter {
public:
  Counter(Block &block, Work &work) : work_(work) {
    for (Operation &op : block)
      if (foldsRows(&op))
        rows_ = std::max(rows_, ir::elementCount(op.getResult(0).getType()));
  }

  void count(Operation *op);

private:
  /// Elements in whole vectors, each row in vectors of its own where the kernel goes by rows. Those of eight
  /// bytes fill two.
  double elementsOf(Value value) const {
    const auto type = cast<RankedTensorType>(value.getType());
    const int64_t size = std::max<int64_t>(ir::elementBytes(type.getElementType()), 4) / 4;
    const int64_t count = ir::elementCount(type);
    const bool byRows = rows_ > 0 && count % rows_ == 0;
    return static_cast<double>((byRows ? rows_ * roundedUp(count / rows_) : roundedUp(count)) * size);
  }

  /// Batcher's network: n log² n / 4 comparisons of each row.
  double comparisonsOf(Value operand, int64_t dim) const {
    const double length = static_cast<double>(ir::shapeOf(operand)[dim]),
                 depth = std::log2(std::max(length, 2.0));
    return elementsOf(operand) * depth * depth / 4;
  }

  template <typename Pool> double windowElements(Pool pool, Value windows) const {
    return elementsOf(windows) * static_cast<double>(llvm::product_of(pool.getWindow()));
  }

  /// Of the gradient of a pooling, each of whose elements looks into all windows that may hold it.
  template <typename Pool> double holdingWindows(Pool pool) const {
    double windows = 1;
    for (auto [size, stride] : llvm::zip_equal(pool.getWindow(), pool.getStrides()))
      windows *= std::ceil(static_cast<double>(size) / static_cast<double>(stride));
    return elementsOf(pool->getResult(0)) * windows;
  }

  void countReduction(Operation *op) {
    work_[Unit::fold] += elementsOf(op->getOperand(0));
    if (foldsRows(op))
      work_[llvm::all_of(op->getUsers(), isEnd) ? Unit::row : Unit::chain] +=
          static_cast<double>(ir::elementCount(op->getResult(0).getType()));
  }

  Work &work_;
  int64_t rows_ = 0; ///< 0: it goes by elements.
};

void Counter::count(Operation *op) {
  if (isReduction(op) || isa<ir::CumsumOp>(op))
    return isReduction(op) ? countReduction(op) : void(work_[Unit::fold] += elementsOf(op->getResult(0)));
  if (auto scatter = dyn_cast<ir::ScatterAddOp>(op))
    return void(work_[Unit::scatter] += elementsOf(scatter.getUpdates()));
  if (isa<ir::GatherOp, ir::MaxPool2dGatherOp>(op))
    return void(work_[Unit::gather] += elementsOf(op->getResult(0)));
  if (auto sort = dyn_cast<ir::SortOp>(op))
    return void(work_[Unit::comparison] += comparisonsOf(sort.getOperand(), sort.getDim()));
  if (auto top = dyn_cast<ir::TopKOp>(op))
    return void(work_[Unit::comparison] += comparisonsOf(top.getOperand(), top.getDim()));
  if (auto pool = dyn_cast<ir::MaxPool2dOp>(op))
    return void(work_[Unit::window] += windowElements(pool, pool->getResult(0)));
  if (auto pool = dyn_cast<ir::AvgPool2dOp>(op))
    return void(work_[Unit::window] += windowElements(pool, pool->getResult(0)));
  if (auto pool = dyn_cast<ir::MaxPool2dGradientOp>(op))
    return void(work_[Unit::window] += holdingWindows(pool));
  if (auto pool = dyn_cast<ir::AvgPool2dGradientOp>(op))
    return void(work_[Unit::window] += holdingWindows(pool));
  if (isa<ir::ConstantOp, ir::BroadcastOp, ir::ReshapeOp>(op) || op->getNumResults() == 0)
    return; // free
  work_[unitOf(op)] += elementsOf(op->getResult(0));
}

/// Segments of a launch are kernels of their own.
void countBlock(Block &block, Work &work) {
  Counter counter(block, work);
  for (Operation &op : block) {
    if (auto segment = dyn_cast<ir::FusedOp>(&op))
      countBlock(segment->getRegion(0).front(), work);
    else if (!isEnd(&op))
      counter.count(&op);
  }
}

} // namespace

void countKernel(Block &body, Work &work) { countBlock(body, work); }

} // namespace gpuc
