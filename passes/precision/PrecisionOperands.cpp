//===- PrecisionOperands.cpp - What an operand is to its op ------------------===//

#include "passes/precision/PrecisionOperands.h"

#include "passes/precision/PrecisionLists.h"

namespace gpuc {

using namespace mlir;

static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

bool isWeak(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<ir::ConstantOp>(op))
    return constant.getSplat() != nullptr;
  if (auto broadcast = dyn_cast_or_null<ir::BroadcastOp>(op))
    return rankOf(broadcast.getOperand()) == 0 || isWeak(broadcast.getOperand());
  if (auto reshape = dyn_cast_or_null<ir::ReshapeOp>(op))
    return isWeak(reshape.getOperand());
  return false;
}

bool isNumberBeyond(Value value, FloatType type) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<ir::BroadcastOp, ir::ReshapeOp>(op))
    return isNumberBeyond(op->getOperand(0), type);
  auto constant = dyn_cast_or_null<ir::ConstantOp>(op);
  auto number = constant ? dyn_cast_or_null<FloatAttr>(constant.getSplat()) : FloatAttr();
  if (!number || !number.getValue().isFiniteNonZero())
    return false;
  APFloat rounded = number.getValue();
  bool losesDigits;
  rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesDigits);
  return !rounded.isFiniteNonZero();
}

bool isRepeatedVector(Value value) {
  auto repeated = value.getDefiningOp<ir::BroadcastOp>();
  return repeated && rankOf(repeated.getOperand()) == 1;
}

/// What a loop takes for an argument of its region that is the same in all iterations, or a slice.
static Value outerValue(BlockArgument argument) {
  auto scan = dyn_cast<ir::ScanOp>(argument.getOwner()->getParentOp());
  if (!scan)
    return {};
  unsigned number = argument.getArgNumber(), inputs = scan.getInputs().size();
  bool carried = number >= inputs && number < inputs + scan.getInits().size();
  return carried ? Value() : scan->getOperand(number);
}

/// `depth` ops far at most: what lies farther away is no part of a layer.
static bool comesOfProduct(Value value, int depth) {
  if (depth == 0)
    return false;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Value outer = outerValue(argument);
    return outer && comesOfProduct(outer, depth - 1);
  }
  Operation *op = value.getDefiningOp();
  if (isa<ir::ReshapeOp, ir::TransposeOp, ir::SliceOp>(op))
    return comesOfProduct(op->getOperand(0), depth - 1);
  if (isa<ir::AddOp>(op))
    return comesOfProduct(op->getOperand(0), depth - 1) || comesOfProduct(op->getOperand(1), depth - 1);
  auto product = dyn_cast<ir::ProductOpInterface>(op);
  return product && product.isOfLayer();
}

bool comesOfProduct(Value value) { return comesOfProduct(value, /*depth=*/8); }

bool staysWide(OpOperand &operand) {
  auto norm = dyn_cast<ir::BatchNormOp>(operand.getOwner());
  return norm && (&operand == &norm.getRunningMeanMutable() || &operand == &norm.getRunningVarianceMutable());
}

SmallVector<bool> findStates(ir::ScanOp scan) {
  DenseSet<Value> carried, products; // what depends on what is carried, and on a product of that
  for (Value carry : scan.getCarries())
    carried.insert(carry);
  for (Operation &op : scan.getBlock().without_terminator()) {
    auto reads = [&](const DenseSet<Value> &set) {
      return llvm::any_of(op.getOperands(), [&](Value value) { return set.contains(value); });
    };
    const PrecisionRule *rule = findPrecisionRule(op.getName().stripDialect());
    bool isProduct = rule && rule->kind == PrecisionClass::lower && reads(carried);
    if (isProduct || reads(products))
      products.insert_range(op.getResults());
    if (reads(carried))
      carried.insert_range(op.getResults());
  }
  SmallVector<bool> states;
  for (auto [carry, next] : llvm::zip_equal(scan.getCarries(), scan.getNextCarries())) {
    auto add = next.getDefiningOp<ir::AddOp>();
    bool isSum = add && (add.getLhs() == carry || add.getRhs() == carry);
    states.push_back(products.contains(next) && !isSum);
  }
  return states;
}

} // namespace gpuc
