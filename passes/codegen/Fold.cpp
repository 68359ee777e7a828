//===- Fold.cpp - What a reduction does to one element ----------------------===//

#include "passes/codegen/Fold.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Pointwise.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

/// Of what the reduction folds.
static ElementKind kindOf(Operation *reduction) { return elementKind(reduction->getOperand(0).getType()); }

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

static State identityOf(Operation *reduction, ImplicitLocOpBuilder &builder, int64_t lanes) {
  ElementKind kind = kindOf(reduction);
  bool isHalf = kind == ElementKind::F16 || kind == ElementKind::BF16;
  Type type = registerType(builder.getContext(), isHalf ? ElementKind::F32 : kind, lanes);
  if (isa<SumOp>(reduction))
    return {constant(builder, type, 0)};
  if (isa<ProdOp>(reduction))
    return {constant(builder, type, 1)};
  State state{extreme(builder, type, kind, !isa<ReduceMinOp>(reduction))};
  if (isa<ArgmaxOp>(reduction)) // an index behind all others, so that any element wins
    state.push_back(
        constantInt(builder, registerType(builder.getContext(), ElementKind::I64, lanes), INT64_MAX));
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

static State mergeOf(Operation *reduction, const State &a, const State &b) {
  bool isWithoutSign = isUnsigned(kindOf(reduction));
  if (isa<ArgmaxOp>(reduction))
    return mergeArgmax(a, b, isWithoutSign);
  if (isa<SumOp>(reduction))
    return {a[0] + b[0]};
  if (isa<ProdOp>(reduction))
    return {a[0] * b[0]};
  return {isa<ReduceMaxOp>(reduction) ? maximum(a[0], b[0], isWithoutSign)
                                      : minimum(a[0], b[0], isWithoutSign)};
}

/// The reduction's element, in register form.
static Expr finish(Operation *reduction, const State &state) {
  if (isa<ArgmaxOp>(reduction))
    return castElement(state[1], ElementKind::I64, elementKind(reduction->getResult(0).getType()));
  return fromCompute(state[0], kindOf(reduction));
}

//===----------------------------------------------------------------------===//
// Side by side
//===----------------------------------------------------------------------===//

/// The reduction's own state, taken off the front of what is left.
static State takeFirst(Operation *reduction, ArrayRef<Expr> &rest) {
  size_t registers = isa<ArgmaxOp>(reduction) ? 2 : 1;
  State own(rest.take_front(registers));
  rest = rest.drop_front(registers);
  return own;
}

State Folds::identity(int64_t lanes) {
  State state;
  for (Operation *reduction : reductions_)
    state.append(identityOf(reduction, emitter_.builder(), lanes));
  return state;
}

State Folds::elements(Expr mask) {
  ImplicitLocOpBuilder &builder = emitter_.builder();
  State state;
  for (Operation *reduction : reductions_) {
    State own{toCompute(emitter_.emitLanes(reduction->getOperand(0), kernel_.everywhere), kindOf(reduction))};
    if (std::optional<size_t> folded = kernel_.orderedGroup(); isa<ArgmaxOp>(reduction))
      own.push_back(folded ? emitter_.laneCoordinate(*folded) // of an extent of 1 the index is 0
                           : splat(constantInt(builder, builder.getI64Type(), 0), emitter_.lanes()));
    if (mask)
      for (auto [element, nothing] : llvm::zip_equal(own, identityOf(reduction, builder, emitter_.lanes())))
        element = select(mask, element, nothing);
    state.append(own);
  }
  return state;
}

State Folds::merge(const State &a, const State &b) {
  State state;
  ArrayRef<Expr> restOfA = a, restOfB = b;
  for (Operation *reduction : reductions_) {
    State first = takeFirst(reduction, restOfA), second = takeFirst(reduction, restOfB);
    state.append(mergeOf(reduction, first, second));
  }
  return state;
}

State Folds::mergeLanes(State state) {
  ImplicitLocOpBuilder &builder = emitter_.builder();
  for (int64_t half = state.front().lanes() / 2; half >= 1; half /= 2) {
    auto part = [&](Expr vector, int64_t offset) -> Expr {
      if (half == 1)
        return {builder, vector::ExtractOp::create(builder, vector.value(), offset)};
      return {builder, vector::ShuffleOp::create(builder, vector.value(), vector.value(),
                                                 llvm::to_vector(llvm::seq<int64_t>(offset, offset + half)))};
    };
    State lower, upper;
    for (Expr vector : state) {
      lower.push_back(part(vector, 0));
      upper.push_back(part(vector, half));
    }
    state = merge(lower, upper);
  }
  return state;
}

void Folds::bind(const State &state) {
  ArrayRef<Expr> rest = state;
  for (Operation *reduction : reductions_)
    emitter_.bind(reduction, finish(reduction, takeFirst(reduction, rest)));
}

} // namespace gpuc::codegen
