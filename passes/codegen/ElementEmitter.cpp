//===- ElementEmitter.cpp - The value of a tensor expression at an index ----===//

#include "passes/codegen/ElementEmitter.h"

#include "passes/codegen/Pointwise.h"
#include "passes/codegen/math/Philox.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

ElementEmitter::ElementEmitter(ImplicitLocOpBuilder &builder, const Kernel &kernel, ArrayRef<Value> pointers)
    : builder_(builder), kernel_(kernel), pointers_(pointers), coordinates_(kernel.groups.size()) {}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void ElementEmitter::enter(Region &region) {
  levels_.push_back({region.getParentOp(), SmallVector<Coordinate>(coordinates_), tailMask_, tailCount_,
                     laneGroup_, lanes_});
  Block &block = region.front();
  if (block.mightHaveTerminator())
    builder_.setInsertionPoint(block.getTerminator());
  else
    builder_.setInsertionPointToEnd(&block);
}

void ElementEmitter::leave() {
  Level outer = levels_.pop_back_val();
  coordinates_ = outer.coordinates;
  tailMask_ = outer.tailMask;
  tailCount_ = outer.tailCount;
  laneGroup_ = outer.laneGroup;
  lanes_ = outer.lanes;
  // What was known only further in is gone; so is what stood on another mask or lane count.
  for (auto &[value, memos] : memo_)
    llvm::erase_if(memos, [&](const Memo &memo) { return memo.known.level > level(); });
  bound_.remove_if([&](const auto &entry) { return entry.second.level > level(); });
  builder_.setInsertionPointAfter(outer.holder);
}

void ElementEmitter::setCoordinate(size_t group, Value first, Range range) {
  for (auto &[value, memos] : memo_) // what may have depended on the former coordinate
    llvm::erase_if(memos, [&](const Memo &memo) { return memo.known.level == level(); });
  coordinates_[group] = {{Expr(builder_, first), level()}, range};
}

void ElementEmitter::setLanes(size_t group, int64_t lanes, int64_t alignment) {
  laneGroup_ = group;
  lanes_ = lanes;
  alignment_ = alignment;
}

Known ElementEmitter::at(int wanted, llvm::function_ref<Expr()> make) {
  if (wanted == level())
    return {make(), wanted};
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPoint(levels_[wanted].holder);
  return {make(), wanted};
}

Known ElementEmitter::combine(ArrayRef<Known> operands, llvm::function_ref<Expr(ArrayRef<Expr>)> make) {
  int innermost = 0;
  bool vector = false;
  for (const Known &operand : operands) {
    innermost = std::max(innermost, operand.level);
    vector |= operand.isVector();
  }
  return at(innermost, [&] {
    SmallVector<Expr> inputs;
    for (const Known &operand : operands)
      inputs.push_back(splat(operand.expr, vector ? lanes_ : 1));
    return make(inputs);
  });
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

Known ElementEmitter::emit(Value value, const Index &index, const Guard &guard) {
  if (auto bound = bound_.find(value.getDefiningOp()); bound != bound_.end())
    return bound->second;
  for (const Memo &memo : memo_[value])
    if (memo.guard == guard.expr.value() && memo.index == index)
      return memo.known;
  Known known;
  if (auto argument = dyn_cast<BlockArgument>(value))
    known = loadAt(pointers_[argument.getArgNumber()], elementKind(value.getType()), shapeOf(value), index,
                   guard);
  else if (auto kept = kept_.find(value); kept != kept_.end() && index == kernel_.everywhere)
    known = {load(kept->second.pointer, elementKind(value.getType()), kept->second.place), level()};
  else if (auto pool = value.getDefiningOp<MaxPool2dOp>())
    known = emitMaxPool(pool, cast<OpResult>(value).getResultNumber(), index, guard);
  else
    known = compute(value.getDefiningOp(), index, guard);
  memo_[value].push_back({index, guard.expr.value(), known});
  return known;
}

Known ElementEmitter::compute(Operation *op, const Index &index, const Guard &guard) {
  if (isMovement(op))
    return emit(op->getOperand(0), movedIndex(op, index), guard);
  if (isPointwise(op))
    return emitPointwiseOp(op, index, guard);
  return TypeSwitch<Operation *, Known>(op)
      .Case<ConstantOp, IotaOp, RandomBitsOp, GatherOp, ConcatOp, PadOp, DynamicSliceOp, DynamicUpdateSliceOp,
            MaxPool2dGradientOp, MaxPool2dGatherOp, AvgPool2dOp, AvgPool2dGradientOp>(
          [&](auto known) { return emitOp(known, index, guard); })
      .Default(
          [](Operation *) -> Known { llvm_unreachable("checkKernel let through what cannot be emitted"); });
}

Known ElementEmitter::emitPointwiseOp(Operation *op, const Index &index, const Guard &guard) {
  SmallVector<Known> operands;
  for (Value operand : op->getOperands())
    operands.push_back(emit(operand, index, guard));
  return combine(operands, [&](ArrayRef<Expr> inputs) { return emitPointwise(op, inputs); });
}

Known ElementEmitter::emitOp(IotaOp iota, const Index &index, const Guard &) {
  ElementKind kind = elementKind(iota.getResult().getType());
  return combine({materialize(index[iota.getDim()])},
                 [&](ArrayRef<Expr> x) { return castElement(x[0], ElementKind::I64, kind); });
}

Expr ElementEmitter::emitLanes(Value value, const Index &index) { return widened(emit(value, index, {})); }

/// Whether the lanes are elements one behind the other, the first at a multiple of four: loops over lanes
/// begin at multiples of their number.
bool ElementEmitter::startsAtGroups(const Affine &linear) const {
  if (lanes_ < 8 || linear.constant % 4 != 0)
    return false;
  for (auto [number, group] : llvm::enumerate(kernel_.groups)) {
    int64_t coefficient = linear.coefficients[group.last];
    if (number == laneGroup_ ? coefficient != 1 : coefficient % 4 != 0)
      return false;
  }
  return true;
}

Known ElementEmitter::emitOp(RandomBitsOp random, const Index &index, const Guard &) {
  Value result = random.getResult();
  auto scalar = [&](Value operand) {
    Known known = emit(operand, {}, {});
    return combine({known}, [&](ArrayRef<Expr> x) {
      return castElement(x[0], elementKind(operand.getType()), ElementKind::I64);
    });
  };
  Affine linear = linearAddress(index, shapeOf(result), kernel_.space());
  bool isRun = startsAtGroups(linear) && !random.getFrom() &&
               llvm::none_of(index, [](const Affine &entry) { return entry.isDynamic; });
  int64_t laneStride;
  SmallVector<Known> inputs{isRun ? staticPart(linear, laneStride) : materialize(linear),
                            scalar(random.getSeed()), scalar(random.getStep())};
  for (auto [entry, stride] : llvm::zip_equal(index, rowMajorStrides(shapeOf(result))))
    if (entry.isDynamic) {
      Affine part = constantAffine(0, kernel_.space());
      part = sum(part, entry, stride);
      part.constant = 0;
      part.coefficients.assign(kernel_.space(), 0);
      inputs[0] = combine({inputs[0], materialize(part)}, [](ArrayRef<Expr> x) { return x[0] + x[1]; });
    }
  if (Value from = random.getFrom())
    inputs[0] = combine({inputs[0], scalar(from)}, [](ArrayRef<Expr> x) { return x[0] + x[1]; });
  Value id = randomIds_.lookup(random);
  inputs.push_back(at(0, [&] {
    return id ? Expr(builder_, id) : constantInt(builder_, builder_.getI64Type(), random.getId());
  }));
  return combine(inputs, [&](ArrayRef<Expr> x) {
    Expr bits = isRun ? emitPhiloxRun(x[0], lanes_, x[1], x[2], x[3]) : emitPhilox(x[0], x[1], x[2], x[3]);
    return castElement(bits, ElementKind::I32, elementKind(result.getType()));
  });
}

//===----------------------------------------------------------------------===//
// Coordinates as numbers
//===----------------------------------------------------------------------===//

Expr ElementEmitter::laneNumbers() { return codegen::laneNumbers(builder_, builder_.getI64Type(), lanes_); }

int ElementEmitter::levelOf(const Affine &affine) const {
  int innermost = 0;
  for (auto [group, coordinate] : llvm::zip_equal(kernel_.groups, coordinates_))
    if (affine.coefficients[group.last] != 0)
      innermost = std::max(innermost, coordinate.first.level);
  return innermost;
}

Expr ElementEmitter::strideAlong(size_t group, int64_t stride) {
  return llvm::is_contained(stridesBeside_, group) ? Expr(builder_, strideOf_(stride))
                                                   : constantInt(builder_, builder_.getI64Type(), stride);
}

Known ElementEmitter::staticPart(const Affine &affine, int64_t &laneStride) {
  laneStride = 0;
  struct Term {
    size_t group;
    int64_t stride;
    Known at;
  };
  SmallVector<Term> terms;
  for (auto [number, group] : llvm::enumerate(kernel_.groups)) {
    int64_t coefficient = affine.coefficients[group.last];
    if (coefficient == 0)
      continue;
    terms.push_back({number, coefficient, coordinates_[number].first});
    if (number == laneGroup_ && lanes_ > 1)
      laneStride = coefficient;
  }
  return at(levelOf(affine), [&] {
    Expr total = constantInt(builder_, builder_.getI64Type(), affine.constant);
    for (auto &[group, stride, at] : terms)
      total = total + (stride == 1 ? at.expr : at.expr * strideAlong(group, stride));
    return total;
  });
}

Known ElementEmitter::materialize(const Affine &affine) {
  int64_t laneStride;
  Known result = staticPart(affine, laneStride);
  if (laneStride != 0)
    result = at(result.level, [&] {
      Expr numbers = laneNumbers();
      return splat(result.expr, lanes_) + numbers * numbers.integer(laneStride);
    });
  if (!affine.isDynamic)
    return result;
  Known dynamic{Expr(builder_, affine.dynamic), affine.dynamicLevel};
  return combine({result, dynamic},
                 [&](ArrayRef<Expr> x) { return x[0] + x[1] * x[1].integer(affine.dynamicScale); });
}

Expr ElementEmitter::laneCoordinate(size_t group) {
  Known first = coordinates_[group].first;
  if (group != laneGroup_ || lanes_ == 1)
    return splat(first.expr, lanes_);
  return splat(first.expr, lanes_) + laneNumbers();
}

//===----------------------------------------------------------------------===//
// Ops whose elements are chosen by index
//===----------------------------------------------------------------------===//

ElementEmitter::Guard ElementEmitter::both(const Guard &a, const Guard &b) {
  if (!a.expr || !b.expr)
    return a.expr ? a : b;
  return combine({a, b}, [](ArrayRef<Expr> x) { return x[0] & x[1]; });
}

/// 0 <= position < extent, by one unsigned comparison.
Known ElementEmitter::within(Known position, int64_t extent) {
  return combine({position}, [&](ArrayRef<Expr> x) { return below(x[0], x[0].integer(extent)); });
}

ElementEmitter::Where ElementEmitter::whereIs(const Affine &position, int64_t extent) const {
  if (position.isDynamic)
    return Where::Either;
  int64_t least = position.constant, most = position.constant;
  for (auto [group, coordinate] : llvm::zip_equal(kernel_.groups, coordinates_)) {
    int64_t coefficient = position.coefficients[group.last];
    int64_t atLow = coefficient * coordinate.range.low, atLast = coefficient * (coordinate.range.high - 1);
    least += std::min(atLow, atLast);
    most += std::max(atLow, atLast);
  }
  if (0 <= least && most < extent)
    return Where::Inside;
  return most < 0 || least >= extent ? Where::Outside : Where::Either;
}

Known ElementEmitter::choose(const Guard &condition, const Known &onTrue, const Known &onFalse) {
  return combine({condition, onTrue, onFalse}, [](ArrayRef<Expr> x) { return select(x[0], x[1], x[2]); });
}

Affine dynamicAffine(const Known &known, size_t space) {
  Affine affine = constantAffine(0, space);
  affine.dynamic = known.expr.value();
  affine.dynamicScale = 1;
  affine.dynamicLevel = known.level;
  affine.isDynamic = true;
  return affine;
}

Known ElementEmitter::number(ElementKind kind, double value) {
  return at(0, [&] { return numberIn(builder_, kind, 1, value); });
}

Known ElementEmitter::emitOp(GatherOp gather, const Index &index, const Guard &guard) {
  size_t dim = gather.getDim(), count = shapeOf(gather.getIndices()).size();
  Known chosen = emit(gather.getIndices(), Index(index.begin() + dim, index.begin() + dim + count), guard);
  chosen = combine({chosen}, [&](ArrayRef<Expr> x) {
    return castElement(x[0], elementKind(gather.getIndices().getType()), ElementKind::I64);
  });
  Known inside = within(chosen, shapeOf(gather.getOperand())[dim]);
  Index at(index.begin(), index.begin() + dim);
  at.push_back(dynamicAffine(chosen, kernel_.space()));
  at.append(index.begin() + dim + count, index.end());
  return choose(inside, emit(gather.getOperand(), at, both(guard, inside)),
                number(elementKind(gather.getResult().getType()), 0));
}

Known ElementEmitter::emitOp(ConcatOp concat, const Index &index, const Guard &guard) {
  size_t dim = concat.getDim();
  Index at = index;
  Known result;
  for (Value operand : concat.getOperands()) {
    int64_t extent = shapeOf(operand)[dim];
    Where where = whereIs(at[dim], extent);
    if (where == Where::Inside) {
      result = emit(operand, at, guard);
    } else if (where == Where::Either) {
      Known inside = within(materialize(at[dim]), extent);
      Known element = emit(operand, at, both(guard, inside));
      result = result.expr ? choose(inside, element, result) : element;
    }
    at[dim] = scaled(at[dim], 1, -extent);
  }
  // Though it may be computed further out: in another range the result may be another operand's.
  result.level = std::max(result.level, levelOf(index[dim]));
  return result;
}

Known ElementEmitter::toGrid(Affine &position, int64_t step) {
  Known number = materialize(position), steps = quotient(number, step);
  position = dynamicAffine(steps, kernel_.space());
  return isProduct(number, steps, step);
}

Known ElementEmitter::emitOp(PadOp pad, const Index &index, const Guard &guard) {
  ArrayRef<int64_t> shape = shapeOf(pad.getOperand());
  Known value = number(elementKind(pad.getResult().getType()), pad.getValue().convertToDouble());
  Index at = index;
  Known inside;
  int decided = 0; // the level from which on it is known which of the two it is
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t low = pad.getLow()[dim], step = pad.getStep(dim);
    if (low == 0 && pad.getHigh()[dim] == 0 && step == 1)
      continue;
    at[dim] = scaled(at[dim], 1, -low);
    decided = std::max(decided, levelOf(at[dim]));
    int64_t span = std::max<int64_t>(0, (shape[dim] - 1) * step + 1);
    Where where = whereIs(at[dim], span);
    if (where == Where::Outside)
      return {value.expr, decided};
    if (where == Where::Either)
      inside = both(within(materialize(at[dim]), span), inside);
    if (step > 1)
      inside = both(toGrid(at[dim], step), inside);
  }
  Known result = emit(pad.getOperand(), at, both(guard, inside));
  if (inside.expr)
    result = choose(inside, result, value);
  // As with a concat: a constant's element is the same in every range, but beyond this one may lie padding.
  result.level = std::max(result.level, decided);
  return result;
}

/// The window's first position along `dim`, clamped so that the window ends inside.
Known ElementEmitter::windowStart(Value start, int64_t dim, int64_t last, const Guard &guard) {
  Known given = emit(start, {constantAffine(dim, kernel_.space())}, {});
  return combine({given}, [&](ArrayRef<Expr> x) {
    Expr wide = castElement(x[0], elementKind(start.getType()), ElementKind::I64);
    return minimum(maximum(wide, wide.integer(0), false), wide.integer(last), false);
  });
}

Known ElementEmitter::emitOp(DynamicSliceOp slice, const Index &index, const Guard &guard) {
  Index at = index;
  for (size_t dim = 0; dim < at.size(); ++dim) {
    // The result's extents, not the sizes: a size of -1 is the operand's extent.
    int64_t last = shapeOf(slice.getOperand())[dim] - shapeOf(slice.getResult())[dim];
    if (last > 0)
      at[dim] =
          sum(at[dim], dynamicAffine(windowStart(slice.getStart(), dim, last, guard), kernel_.space()), 1);
  }
  return emit(slice.getOperand(), at, guard);
}

Known ElementEmitter::emitOp(DynamicUpdateSliceOp update, const Index &index, const Guard &guard) {
  ArrayRef<int64_t> window = shapeOf(update.getUpdate());
  Index at = index;
  Known inside;
  for (size_t dim = 0; dim < at.size(); ++dim) {
    int64_t last = shapeOf(update.getOperand())[dim] - window[dim];
    if (last == 0)
      continue;
    at[dim] =
        sum(at[dim], dynamicAffine(windowStart(update.getStart(), dim, last, guard), kernel_.space()), -1);
    inside = both(inside, within(materialize(at[dim]), window[dim]));
  }
  if (!inside.expr)
    return emit(update.getUpdate(), index, guard);
  return choose(inside, emit(update.getUpdate(), at, both(guard, inside)),
                emit(update.getOperand(), index, guard));
}

} // namespace gpuc::codegen
