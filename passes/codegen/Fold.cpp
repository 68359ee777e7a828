//===- Fold.cpp - What a reduction does to one element ----------------------===//

#include "passes/codegen/Fold.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Pointwise.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

Fold::Fold(Operation *reduction, const Kernel &kernel, ElementEmitter &emitter)
    : reduction_(reduction), kernel_(kernel), emitter_(emitter), operand_(reduction->getOperand(0)),
      kind_(elementKind(operand_.getType())), dimGroup_(kernel.groups.size()) {
  for (auto [number, group] : llvm::enumerate(kernel.groups))
    if (group.role == Role::Ordered)
      dimGroup_ = number;
}

/// The least (or greatest) value of the type: what max (or min) of nothing is.
static Expr extreme(ImplicitLocOpBuilder &builder, Type type, ElementKind kind, bool least) {
  if (isFloat(kind))
    return constant(builder, type,
                    least ? -std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::infinity());
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  APInt value = isUnsigned(kind)
                    ? (least ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                    : (least ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
  return constantInt(builder, type, value.getSExtValue());
}

Expr Fold::identityValue(int64_t lanes) {
  ImplicitLocOpBuilder &builder = emitter_.builder();
  Type type = registerType(builder.getContext(), kind_, lanes);
  if (kind_ == ElementKind::F16 || kind_ == ElementKind::BF16)
    type = registerType(builder.getContext(), ElementKind::F32, lanes);
  if (isa<SumOp>(reduction_))
    return constant(builder, type, 0);
  if (isa<ProdOp>(reduction_))
    return constant(builder, type, 1);
  return extreme(builder, type, kind_, !isa<ReduceMinOp>(reduction_));
}

State Fold::identity(int64_t lanes) {
  State state{identityValue(lanes)};
  if (isa<ArgmaxOp>(reduction_)) { // an index behind all others, so that any element wins
    ImplicitLocOpBuilder &builder = emitter_.builder();
    state.push_back(
        constantInt(builder, registerType(builder.getContext(), ElementKind::I64, lanes), INT64_MAX));
  }
  return state;
}

State Fold::elements(Expr mask) {
  ImplicitLocOpBuilder &builder = emitter_.builder();
  State state{toCompute(emitter_.emitLanes(operand_, kernel_.everywhere), kind_)};
  if (isa<ArgmaxOp>(reduction_)) {
    bool single = dimGroup_ == kernel_.groups.size(); // an extent of 1: the index is 0
    state.push_back(single ? splat(constantInt(builder, builder.getI64Type(), 0), emitter_.lanes())
                           : emitter_.laneCoordinate(dimGroup_));
  }
  if (mask)
    for (auto [element, nothing] : llvm::zip_equal(state, identity(emitter_.lanes())))
      element = select(mask, element, nothing);
  return state;
}

/// The better of two candidates: the larger value, NaN above all, among equals the smaller index. Associative
/// and commutative, so that lanes may be merged in any tree.
static State mergeArgmax(const State &a, const State &b, bool isUnsigned) {
  Expr larger, same;
  if (a[0].isFloat()) {
    Expr aNan = isNan(a[0]), bNan = isNan(b[0]);
    Expr onlyB = bNan & (aNan ^ aNan.integer(1));
    larger = less(a[0], b[0]) | onlyB;
    same = equal(a[0], b[0]) | (aNan & bNan);
  } else {
    larger = notEqual(maximum(a[0], b[0], isUnsigned), a[0]);
    same = equal(a[0], b[0]);
  }
  Expr takeB = larger | (same & less(b[1], a[1]));
  return {select(takeB, b[0], a[0]), select(takeB, b[1], a[1])};
}

State Fold::merge(const State &a, const State &b) {
  if (isa<ArgmaxOp>(reduction_))
    return mergeArgmax(a, b, isUnsigned(kind_));
  if (isa<SumOp>(reduction_))
    return {a[0] + b[0]};
  if (isa<ProdOp>(reduction_))
    return {a[0] * b[0]};
  return {isa<ReduceMaxOp>(reduction_) ? maximum(a[0], b[0], isUnsigned(kind_))
                                       : minimum(a[0], b[0], isUnsigned(kind_))};
}

Expr Fold::finish(const State &state) {
  if (isa<ArgmaxOp>(reduction_))
    return castElement(state[1], ElementKind::I64, elementKind(reduction_->getResult(0).getType()));
  return fromCompute(state[0], kind_);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

Folds::Folds(ArrayRef<Operation *> reductions, const Kernel &kernel, ElementEmitter &emitter)
    : reductions_(reductions), emitter_(emitter), begins_{0} {
  for (Operation *reduction : reductions) {
    folds_.push_back(Fold(reduction, kernel, emitter));
    begins_.push_back(begins_.back() + (isa<ArgmaxOp>(reduction) ? 2 : 1));
  }
}

State Folds::identity(int64_t lanes) {
  State state;
  for (Fold &fold : folds_)
    state.append(fold.identity(lanes));
  return state;
}

State Folds::elements(Expr mask) {
  State state;
  for (Fold &fold : folds_)
    state.append(fold.elements(mask));
  return state;
}

static State partOf(const State &state, ArrayRef<size_t> begins, size_t number) {
  return State(ArrayRef(state).slice(begins[number], begins[number + 1] - begins[number]));
}

State Folds::merge(const State &a, const State &b) {
  State state;
  for (auto [number, fold] : llvm::enumerate(folds_))
    state.append(fold.merge(partOf(a, begins_, number), partOf(b, begins_, number)));
  return state;
}

void Folds::bind(const State &state) {
  for (auto [number, reduction] : llvm::enumerate(reductions_))
    emitter_.bind(reduction, folds_[number].finish(partOf(state, begins_, number)));
}

} // namespace gpuc::codegen
