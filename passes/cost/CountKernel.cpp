//===- CountKernel.cpp - What a generated kernel does, counted -----------------===//

#include "passes/cost/Work.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Codegen.h"

#include <cmath>

using namespace mlir;

namespace gpuc {
namespace {

/// Elements in whole vectors, of which those of eight bytes fill two.
double elementsOf(Value value) {
  constexpr int64_t kLanes = 16;
  const auto type = cast<RankedTensorType>(value.getType());
  const int64_t size = std::max<int64_t>(ir::elementBytes(type.getElementType()), 4) / 4;
  return static_cast<double>((ir::elementCount(type) + kLanes - 1) / kLanes * kLanes * size);
}

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

void countReduction(Operation *op, Work &work) {
  const SmallVector<int64_t> folded = foldedDims(op);
  const int64_t rank = static_cast<int64_t>(ir::shapeOf(op->getOperand(0)).size());
  work[Unit::fold] += elementsOf(op->getOperand(0));
  if (!folded.empty() && folded.back() + 1 == rank)
    work[Unit::row] += static_cast<double>(ir::elementCount(op->getResult(0).getType()));
}

/// Batcher's network: n log² n / 4 comparisons of each row.
double comparisonsOf(Value operand, int64_t dim) {
  const double length = static_cast<double>(ir::shapeOf(operand)[dim]),
               depth = std::log2(std::max(length, 2.0));
  return elementsOf(operand) * depth * depth / 4;
}

template <typename Pool> double windowElements(Pool pool, Value windows) {
  return elementsOf(windows) * static_cast<double>(llvm::product_of(pool.getWindow()));
}

void countOp(Operation *op, Work &work) {
  if (isReduction(op) || isa<ir::CumsumOp>(op))
    return isReduction(op) ? countReduction(op, work)
                           : void(work[Unit::fold] += elementsOf(op->getResult(0)));
  if (auto scatter = dyn_cast<ir::ScatterAddOp>(op))
    return void(work[Unit::scatter] += elementsOf(scatter.getUpdates()));
  if (isa<ir::GatherOp, ir::MaxPool2dGatherOp>(op))
    return void(work[Unit::gather] += elementsOf(op->getResult(0)));
  if (auto sort = dyn_cast<ir::SortOp>(op))
    return void(work[Unit::comparison] += comparisonsOf(sort.getOperand(), sort.getDim()));
  if (auto top = dyn_cast<ir::TopKOp>(op))
    return void(work[Unit::comparison] += comparisonsOf(top.getOperand(), top.getDim()));
  if (auto pool = dyn_cast<ir::MaxPool2dOp>(op))
    return void(work[Unit::window] += windowElements(pool, pool->getResult(0)));
  if (auto pool = dyn_cast<ir::AvgPool2dOp>(op))
    return void(work[Unit::window] += windowElements(pool, pool->getResult(0)));
  if (auto pool = dyn_cast<ir::MaxPool2dGradientOp>(op))
    return void(work[Unit::window] += windowElements(pool, pool.getCotangent()));
  if (auto pool = dyn_cast<ir::AvgPool2dGradientOp>(op))
    return void(work[Unit::window] += windowElements(pool, pool.getCotangent()));
  if (isa<ir::ConstantOp, ir::BroadcastOp, ir::ReshapeOp>(op) || op->getNumResults() == 0)
    return; // free
  work[unitOf(op)] += elementsOf(op->getResult(0));
}

} // namespace

void countKernel(Block &body, Work &work) {
  body.walk([&](Operation *op) {
    if (!isa<ir::FusedOp>(op) && !op->hasTrait<OpTrait::IsTerminator>())
      countOp(op, work);
  });
}

} // namespace gpuc
