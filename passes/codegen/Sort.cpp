//===- Sort.cpp - One row in order, in place --------------------------------===//
//
// sort: Batcher's merge exchange [Knuth, The Art of Computer Programming 3, Algorithm 5.2.2M] sorts any
// number of elements by comparisons at fixed places, so that vectors and warps sort rows side by side without
// a branch. About n log²(n) / 4 comparisons.
//
// top_k: a heap of the best k so far, the worst on top [ibid., 5.2.3]; an element that is better takes its
// place. What is sorted with the worst first is such a heap. At most n log(k) comparisons, about n on data in
// no order.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/Sort.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Pointwise.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

RowSorter::RowSorter(const Kernel &kernel, ElementEmitter &emitter, Value values, Value indices)
    : emitter_(emitter), builder_(emitter.builder()), operand_(kernel.root->getOperand(0)), values_(values),
      indices_(indices), operandIndex_(rootOperands(kernel)[0].second),
      kind_(elementKind(operand_.getType())) {
  auto sort = dyn_cast<SortOp>(kernel.root);
  auto topK = dyn_cast<TopKOp>(kernel.root);
  largestFirst_ = sort ? sort.getDescending() : !topK.getSmallest();
  extent_ = shapeOf(operand_)[sort ? sort.getDim() : topK.getDim()];
  kept_ = sort ? extent_ : topK.getK();
  address_ = linearAddress(kernel.resultIndex, shapeOf(kernel.root->getResult(0)), kernel.space());
  group_ = kernel.orderedGroup();
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

void RowSorter::moveTo(Value position) {
  if (group_)
    emitter_.setCoordinate(*group_, position);
}

RowSorter::Entry RowSorter::operandAt(Value position) {
  moveTo(position);
  return {emitter_.emitLanes(operand_, operandIndex_), splat(Expr(builder_, position), emitter_.lanes())};
}

RowSorter::Entry RowSorter::load(Value position) {
  moveTo(position);
  return {emitter_.load(values_, kind_, address_), emitter_.load(indices_, ElementKind::I64, address_)};
}

void RowSorter::store(Value position, const Entry &entry) {
  moveTo(position);
  emitter_.store(entry.value, values_, kind_, address_);
  emitter_.store(entry.index, indices_, ElementKind::I64, address_);
}

Expr RowSorter::isLess(Expr a, Expr b) {
  if (!a.isFloat())
    return notEqual(maximum(a, b, isUnsigned(kind_)), a);
  Expr aNan = isNan(a);
  return less(a, b) | (isNan(b) & (aNan ^ aNan.integer(1)));
}

Expr RowSorter::precedes(const Entry &a, const Entry &b) {
  Expr x = toCompute(a.value, kind_), y = toCompute(b.value, kind_);
  Expr before = largestFirst_ ? isLess(y, x) : isLess(x, y);
  Expr after = largestFirst_ ? isLess(x, y) : isLess(y, x);
  return before | ((after ^ after.integer(1)) & less(a.index, b.index));
}

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

/// The operand may lie where a result does: each of its elements is read before its place is written, and
/// never again.
void RowSorter::copyOperand() {
  loop(number(kept_), [&](Value position) { store(position, operandAt(position)); });
}

void RowSorter::emitSort() {
  copyOperand();
  sortResults(Order::BestFirst);
}

/// The elements at `low` and `high` in the order wanted.
void RowSorter::exchange(Value low, Value high, Order order) {
  Entry first = load(low), second = load(high);
  Expr swap = order == Order::BestFirst ? precedes(second, first) : precedes(first, second);
  store(low, {select(swap, second.value, first.value), select(swap, second.index, first.index)});
  store(high, {select(swap, first.value, second.value), select(swap, first.index, second.index)});
}

/// Knuth's loop on p, which is top / 2^level, and on q. Every pass compares what is d apart.
void RowSorter::sortResults(Order order) {
  if (kept_ < 2)
    return;
  int64_t levels = llvm::Log2_64_Ceil(kept_);
  loop(number(levels), [&](Value level) {
    Value passes = arith::AddIOp::create(builder_, level, number(1));
    loop(passes, [&](Value pass) { mergePass(pass, level, levels, order); });
  });
}

/// All i with (i & p) = r below n - d are compared with i + d. The j-th of them is 2 j - (j mod p) + r.
void RowSorter::mergePass(Value pass, Value level, int64_t levels, Order order) {
  auto shift = [&](Value by) {
    return Expr(builder_, arith::ShRUIOp::create(builder_, number(int64_t(1) << levels), by));
  };
  Expr p = shift(Expr(builder_, level).value()), one = p.integer(1), zero = p.integer(0);
  p = shiftRight(p, 1); // 2^(levels - 1 - level)
  Expr isFirst = equal(Expr(builder_, pass), zero);
  Expr r = select(isFirst, zero, p);
  Expr d = select(isFirst, p, shift(pass) - p); // q = 2^(levels - pass)
  // Blocks of 2 p, each with p of them; then a part of a block.
  Expr length = p.integer(kept_) - d, blockMask = p + p - one;
  Expr rest = (length & blockMask) - r;
  rest = minimum(maximum(rest, zero, false), p, false);
  Expr count = shiftRight(length - (length & blockMask), 1) + rest;
  loop(count.value(), [&](Value j) {
    Expr at(builder_, j);
    Expr low = at + at - (at & (p - one)) + r;
    exchange(low.value(), (low + d).value(), order);
  });
}

//===----------------------------------------------------------------------===//
// top_k
//===----------------------------------------------------------------------===//

void RowSorter::emitTopK() {
  assert(emitter_.lanes() == 1 && "lanes would write to different places");
  copyOperand();
  if (kept_ < extent_) {
    sortResults(Order::WorstFirst);
    emitLoop(emitter_, number(kept_), number(extent_), 1, [&](Value position) {
      Entry entry = operandAt(position);
      Expr isBetter = precedes(entry, load(number(0)));
      ifHolds(emitter_, isBetter.value(), [&] { replaceWorst(entry); });
    });
  }
  sortResults(Order::BestFirst);
}

/// Moves the worse of two children up until `entry` is worse than both, and puts it there.
void RowSorter::replaceWorst(const Entry &entry) {
  State hole = emitLoop(emitter_, number(0), number(llvm::Log2_64(kept_)), 1, {Expr(builder_, number(0))},
                        [&](Value, const State &carried) { return descend(entry, carried[0]); });
  store(hole[0].value(), entry);
}

/// One level down from `hole`, whose element has moved away; stays once `entry` belongs there.
State RowSorter::descend(const Entry &entry, Expr hole) {
  Expr left = hole + hole + hole.integer(1), last = hole.integer(kept_ - 1);
  Expr isInside = lessEqual(left, last);
  left = minimum(left, last, false);
  Expr right = minimum(left + left.integer(1), last, false);
  Entry leftEntry = load(left.value()), rightEntry = load(right.value());
  Expr isRight = precedes(leftEntry, rightEntry);
  Expr child = select(isRight, right, left);
  Entry worse{select(isRight, rightEntry.value, leftEntry.value),
              select(isRight, rightEntry.index, leftEntry.index)};
  Expr goesDown = isInside & precedes(entry, worse);
  ifHolds(emitter_, goesDown.value(), [&] { store(hole.value(), worse); });
  return {select(goesDown, child, hole)};
}

} // namespace gpuc::codegen
