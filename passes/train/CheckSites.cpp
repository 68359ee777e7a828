//===- CheckSites.cpp - Where NaN and infinities can begin -------------------===//

#include "passes/train/CheckSites.h"

#include "passes/base/Locations.h"

namespace gpuc {

using namespace mlir;

/// Ops whose results are elements of their operands.
static bool isMove(Operation *op) {
  return isa<ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::PadOp, ir::ConcatOp,
             ir::ReverseOp, ir::GatherOp, ir::DynamicSliceOp, ir::DynamicUpdateSliceOp, ir::SortOp,
             ir::TopKOp, ir::SelectOp, ir::StopGradientOp, ir::ScaleGradientOp>(op);
}

/// Functions that are bounded, or no further from zero than their operands.
static bool isTame(Operation *op) {
  return isa<ir::NegOp, ir::AbsOp, ir::SignOp, ir::FloorOp, ir::CeilOp, ir::RoundOp, ir::MaxOp, ir::MinOp,
             ir::ReduceMaxOp, ir::ReduceMinOp, ir::ReluOp, ir::LeakyReluOp, ir::ClampOp, ir::SinOp, ir::CosOp,
             ir::AtanOp, ir::TanhOp, ir::SigmoidOp, ir::ErfOp, ir::DropoutOp>(op);
}

/// A slope may be large, and what survives dropout is scaled up.
static bool mayGrow(Operation *op) {
  if (auto leaky = dyn_cast<ir::LeakyReluOp>(op))
    return std::abs(leaky.getSlope().convertToDouble()) > 1;
  return isa<ir::DropoutOp>(op);
}

/// From a type to one that holds each of its numbers.
static bool isWideningCast(Operation *op) {
  auto cast = dyn_cast<ir::CastOp>(op);
  if (!cast)
    return false;
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(cast.getOperand().getType()));
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(cast.getType()));
  return from && to &&
         APFloat::semanticsMaxExponent(from.getFloatSemantics()) <=
             APFloat::semanticsMaxExponent(to.getFloatSemantics()) &&
         from.getWidth() <= to.getWidth();
}

bool canMakeNonfinite(Operation *op) {
  if (isa<ir::ConstantOp, ir::IotaOp, ir::RandomBitsOp, ir::RandomUniformOp, ir::RandomNormalOp>(op))
    return false;
  return !isMove(op) && (!isTame(op) || mayGrow(op)) && !isWideningCast(op);
}

//===----------------------------------------------------------------------===//
// Infinities that are meant
//===----------------------------------------------------------------------===//

static bool holdsNonfinite(ir::ConstantOp constant) {
  if (!isFloat(constant))
    return false;
  if (auto number = dyn_cast_or_null<FloatAttr>(constant.getSplat()))
    return !number.getValue().isFinite();
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  return elements &&
         llvm::any_of(elements.getValues<APFloat>(), [](const APFloat &each) { return !each.isFinite(); });
}

/// Whether an infinite operand may well give an infinite result.
static bool keepsInfinity(Operation *op) {
  if (isa<ir::ExpOp, ir::Expm1Op, ir::SigmoidOp, ir::TanhOp, ir::ErfOp, ir::AtanOp, ir::SignOp>(op))
    return false;
  return isMove(op) || op->hasTrait<ir::Pointwise>() ||
         isa<ir::ReduceMaxOp, ir::ReduceMinOp, ir::LogSoftmaxOp>(op);
}

Masked::Masked(func::FuncOp function) {
  function.walk([&](Operation *op) {
    if (auto constant = dyn_cast<ir::ConstantOp>(op); constant && holdsNonfinite(constant))
      add(constant);
    if (auto attention = dyn_cast<ir::AttentionOp>(op); attention && attention.getMask()) {
      seedFromAttention(attention.getMask());
      add(attention.getLogSumExp()); // of a query that sees nothing
    }
  });
  bool changed = true;
  while (changed) { // what a loop carries comes back to its beginning
    changed = false;
    function.walk([&](Operation *op) { changed |= spread(op); });
  }
}

/// The mask, and what it is a copy or a part of.
void Masked::seedFromAttention(Value mask) {
  if (!isFloat(mask) || !add(mask))
    return;
  if (auto argument = dyn_cast<BlockArgument>(mask)) {
    if (auto scan = dyn_cast<ir::ScanOp>(argument.getOwner()->getParentOp()))
      seedFromAttention(scan->getOperand(argument.getArgNumber()));
    return;
  }
  Operation *op = mask.getDefiningOp();
  if (isMove(op) || isa<ir::CastOp, ir::AddOp>(op))
    for (Value operand : op->getOperands())
      seedFromAttention(operand);
}

bool Masked::spread(Operation *op) {
  if (auto scan = dyn_cast<ir::ScanOp>(op))
    return spreadScan(scan);
  if (!keepsInfinity(op) ||
      llvm::none_of(op->getOperands(), [&](Value operand) { return contains(operand); }))
    return false;
  bool changed = false;
  for (Value result : op->getResults())
    changed |= isFloat(result) && add(result);
  return changed;
}

bool Masked::spreadScan(ir::ScanOp scan) {
  bool changed = false;
  for (auto [outer, inner] : llvm::zip_equal(scan->getOperands(), scan.getBlock().getArguments()))
    changed |= contains(outer) && add(inner);
  for (auto [yielded, result] :
       llvm::zip_equal(scan.getBlock().getTerminator()->getOperands(), scan.getResults()))
    changed |= contains(yielded) && add(result);
  for (auto [next, carry] : llvm::zip_equal(scan.getNextCarries(), scan.getCarries()))
    changed |= contains(next) && add(carry);
  return changed;
}

//===----------------------------------------------------------------------===//
// Values that may be left out
//===----------------------------------------------------------------------===//

Guarded::Guarded(Block &block) {
  for (Operation &op : llvm::reverse(block))
    for (Value result : op.getResults())
      if (llvm::all_of(result.getUses(), [&](OpOperand &use) { return isGuardedUse(use); }))
        values_.insert(result);
}

bool Guarded::isGuardedUse(OpOperand &use) const {
  Operation *user = use.getOwner();
  if (isa<ir::SelectOp>(user))
    return true;
  if (user->getNumResults() == 0)
    return false; // it is assigned, yielded or returned
  if (llvm::none_of(user->getResults(), isFloat))
    return true;
  return user->hasTrait<ir::Pointwise>() && contains(user->getResult(0));
}

//===----------------------------------------------------------------------===//
// Who is to blame
//===----------------------------------------------------------------------===//

ir::CheckAttr checkOf(Operation *op) {
  Location location = op->getLoc();
  std::string whole = wholeOf(location);
  StringRef name = whole.empty() ? op->getName().stripDialect() : StringRef(whole);
  return ir::CheckAttr::get(op->getContext(), name, layerName(location), filePlace(location),
                            isBackward(location));
}

ir::CheckAttr checkOfSource(MLIRContext *context, StringRef kind, StringRef name) {
  return ir::CheckAttr::get(context, kind, name, /*location=*/"", /*backward=*/false);
}

} // namespace gpuc
