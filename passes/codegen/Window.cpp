//===- Window.cpp - Pooling, one element at a time --------------------------===//
//
// An element of a pooling folds its window, row by row; an element of a pooling's gradient the windows that
// hold it, last to first. Neither reads what another element wrote, so that all are independent.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/ElementEmitter.h"
#include "passes/codegen/Loops.h"
#include "passes/codegen/Pointwise.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

/// A loop over so few steps is written out: each has an address of its own, and most need no bounds.
constexpr int64_t mostUnrolled = 4;

Expr ElementEmitter::widened(const Known &known) {
  return at(known.level, [&] { return splat(known.expr, lanes_); }).expr;
}

State ElementEmitter::forSteps(int64_t count, State state,
                               llvm::function_ref<State(const Affine &, State)> body) {
  size_t space = kernel_.space();
  if (count <= mostUnrolled) {
    for (int64_t step = 0; step < count; ++step)
      state = body(constantAffine(step, space), state);
    return state;
  }
  auto index = [&](int64_t number) { return constantInt(builder_, builder_.getI64Type(), number).value(); };
  return emitLoop(*this, index(0), index(count), 1, state, [&](Value step, const State &carried) {
    return body(dynamicAffine({Expr(builder_, step), level()}, space), carried);
  });
}

//===----------------------------------------------------------------------===//
// From a window to its elements
//===----------------------------------------------------------------------===//

/// Whether a window can hold what is not in the image.
static bool leavesImage(const Windows &windows, int64_t extent) {
  int64_t last = (windows.count(extent) - 1) * windows.stride - windows.low;
  return windows.low > 0 || last + windows.span() > extent;
}

State ElementEmitter::overWindow(const Windows2d &windows, ArrayRef<int64_t> image, const Index &window,
                                 const State &start,
                                 llvm::function_ref<State(const Index &, const Guard &, State)> body) {
  Index at = window;
  auto along = [&](size_t dim, const Windows &steps, const State &state,
                   llvm::function_ref<State(const Guard &, State)> inner) {
    Affine first = scaled(window[dim], steps.stride, -steps.low);
    return forSteps(steps.size, state, [&](const Affine &step, State carried) {
      at[dim] = sum(first, step, steps.dilation);
      Guard inside;
      if (leavesImage(steps, image[dim]))
        inside = within(materialize(at[dim]), image[dim]);
      return inner(inside, carried);
    });
  };
  return along(windows.rowDim, windows.rows, start, [&](const Guard &rowInside, State state) {
    return along(windows.columnDim(), windows.columns, state, [&](const Guard &columnInside, State carried) {
      return body(at, both(columnInside, rowInside), carried);
    });
  });
}

Known ElementEmitter::emitPlace(const Windows2d &windows, ArrayRef<int64_t> image, const Index &at) {
  return combine({materialize(at[windows.rowDim]), materialize(at[windows.columnDim()])},
                 [&](ArrayRef<Expr> x) { return x[0] * x[0].integer(image[windows.columnDim()]) + x[1]; });
}

Known ElementEmitter::emitMaxPool(MaxPool2dOp op, unsigned result, const Index &index, const Guard &guard) {
  ArrayRef<int64_t> image = shapeOf(op.getOperand());
  ElementKind kind = elementKind(op.getOperand().getType());
  Windows2d windows = windowsOf(op);
  Expr lowest = toCompute(numberIn(builder_, kind, lanes_, -std::numeric_limits<double>::infinity()), kind);
  Expr none = constantInt(builder_, registerType(builder_.getContext(), ElementKind::I64, lanes_), -1);
  State best = overWindow(
      windows, image, index, {lowest, none}, [&](const Index &at, const Guard &inside, State best) {
        Expr element = toCompute(widened(emit(op.getOperand(), at, both(guard, inside))), kind);
        Expr place = widened(emitPlace(windows, image, at));
        // The first, whatever it is; then what is larger; then the first NaN.
        Expr better = less(best[1], best[1].integer(0)) | greater(element, best[0]) |
                      (isNan(element) & equal(best[0], best[0]));
        if (inside.expr)
          better = better & widened(inside);
        return State{select(better, element, best[0]), select(better, place, best[1])};
      });
  Known values{fromCompute(best[0], kind), level()}, indices{best[1], level()};
  Value other = op->getResult(1 - result);
  memo_[other].push_back({index, guard.expr.value(), result == 0 ? indices : values});
  return result == 0 ? values : indices;
}

Known ElementEmitter::elementsInside(const Windows &windows, int64_t extent, const Known &window) {
  return combine({window}, [&](ArrayRef<Expr> x) {
    Expr first = x[0] * x[0].integer(windows.stride) - x[0].integer(windows.low);
    return minimum(first + first.integer(windows.size), first.integer(extent), false) -
           maximum(first, first.integer(0), false);
  });
}

Expr ElementEmitter::divisor(const Windows2d &windows, ArrayRef<int64_t> image, bool excludePadding,
                             const Index &window, Type compute) {
  Known row = materialize(window[windows.rowDim]), column = materialize(window[windows.columnDim()]);
  const int64_t rows = image[windows.rowDim], columns = image[windows.columnDim()];
  bool always =
      !excludePadding || (!leavesImage(windows.rows, rows) && !leavesImage(windows.columns, columns));
  if (always)
    return constant(builder_, compute, static_cast<double>(windows.rows.size * windows.columns.size));
  Known count =
      combine({elementsInside(windows.rows, rows, row), elementsInside(windows.columns, columns, column)},
              [](ArrayRef<Expr> x) { return x[0] * x[1]; });
  return toFloat(widened(count), getElementTypeOrSelf(compute));
}

Known ElementEmitter::emitOp(AvgPool2dOp op, const Index &index, const Guard &guard) {
  ArrayRef<int64_t> image = shapeOf(op.getOperand());
  ElementKind kind = elementKind(op.getOperand().getType());
  Windows2d windows = windowsOf(op);
  Expr zero = toCompute(numberIn(builder_, kind, lanes_, 0), kind);
  State sum = overWindow(windows, image, index, {zero}, [&](const Index &at, const Guard &inside, State sum) {
    Expr element = toCompute(widened(emit(op.getOperand(), at, both(guard, inside))), kind);
    return State{sum[0] + (inside.expr ? select(widened(inside), element, zero) : element)};
  });
  Expr count = divisor(windows, image, op.getExcludePadding(), index, zero.type());
  return {fromCompute(sum[0] / count, kind), level()};
}

//===----------------------------------------------------------------------===//
// From an element to its windows
//===----------------------------------------------------------------------===//

Expr ElementEmitter::overHoldingWindows(const Windows2d &windows, ArrayRef<int64_t> pooled,
                                        const Index &element, Expr zero,
                                        llvm::function_ref<Expr(const Index &, const Guard &)> term) {
  Index at = element;
  auto along = [&](size_t dim, const Windows &steps, const State &state,
                   llvm::function_ref<State(const Guard &, State)> inner) {
    Affine padded = scaled(element[dim], 1, steps.low);
    Known last = quotient(materialize(padded), steps.stride);
    return forSteps(steps.sharing(), state, [&](const Affine &step, State carried) {
      // Window `last` is the last that begins at the element or before it.
      if (steps.stride == 1)
        at[dim] = codegen::sum(padded, step, -1);
      else
        at[dim] =
            dynamicAffine(combine({last, materialize(step)}, [](ArrayRef<Expr> x) { return x[0] - x[1]; }),
                          kernel_.space());
      Known window = materialize(at[dim]);
      Guard holds = both(within(window, pooled[dim]), holdsElement(steps, materialize(padded), window));
      return inner(holds, carried);
    });
  };
  State total = along(windows.rowDim, windows.rows, {zero}, [&](const Guard &rowHolds, State state) {
    return along(windows.columnDim(), windows.columns, state, [&](const Guard &columnHolds, State carried) {
      Guard holds = both(rowHolds, columnHolds);
      return State{carried[0] + select(widened(holds), term(at, holds), zero)};
    });
  });
  return total[0];
}

Known ElementEmitter::quotient(const Known &dividend, int64_t divisor) {
  if (divisor == 1)
    return dividend;
  return combine({dividend}, [&](ArrayRef<Expr> x) { return divideUnsigned(x[0], divisor); });
}

Known ElementEmitter::isProduct(const Known &number, const Known &factor, int64_t other) {
  return combine({number, factor}, [&](ArrayRef<Expr> x) { return equal(x[0], x[1] * x[1].integer(other)); });
}

ElementEmitter::Guard ElementEmitter::holdsElement(const Windows &windows, const Known &padded,
                                                   const Known &window) {
  Known offset =
      combine({padded, window}, [&](ArrayRef<Expr> x) { return x[0] - x[1] * x[1].integer(windows.stride); });
  Guard holds = within(offset, windows.span());
  if (windows.dilation == 1)
    return holds;
  Known steps = quotient(offset, windows.dilation);
  return both(holds, isProduct(offset, steps, windows.dilation));
}

Known ElementEmitter::emitOp(MaxPool2dGradientOp op, const Index &index, const Guard &guard) {
  ElementKind kind = elementKind(op.getResult().getType());
  Windows2d windows = windowsOf(op);
  Expr zero = toCompute(numberIn(builder_, kind, lanes_, 0), kind);
  Expr here = widened(emitPlace(windows, shapeOf(op.getResult()), index));
  Expr total = overHoldingWindows(windows, shapeOf(op.getIndices()), index, zero,
                                  [&](const Index &window, const Guard &holds) {
                                    Guard read = both(holds, guard);
                                    Expr chosen = widened(emit(op.getIndices(), window, read));
                                    Expr cotangent = widened(emit(op.getCotangent(), window, read));
                                    return select(equal(chosen, here), toCompute(cotangent, kind), zero);
                                  });
  return {fromCompute(total, kind), level()};
}

Known ElementEmitter::emitOp(AvgPool2dGradientOp op, const Index &index, const Guard &guard) {
  ElementKind kind = elementKind(op.getResult().getType());
  ArrayRef<int64_t> image = shapeOf(op.getResult());
  Windows2d windows = windowsOf(op);
  Expr zero = toCompute(numberIn(builder_, kind, lanes_, 0), kind);
  Expr total = overHoldingWindows(
      windows, shapeOf(op.getCotangent()), index, zero, [&](const Index &window, const Guard &holds) {
        Expr cotangent = toCompute(widened(emit(op.getCotangent(), window, both(holds, guard))), kind);
        return cotangent / divisor(windows, image, op.getExcludePadding(), window, zero.type());
      });
  return {fromCompute(total, kind), level()};
}

/// The element that the window's index names, if it lies in the window.
Known ElementEmitter::emitOp(MaxPool2dGatherOp op, const Index &index, const Guard &guard) {
  ArrayRef<int64_t> image = shapeOf(op.getOperand());
  Windows2d windows = windowsOf(op);
  Known chosen = emit(op.getIndices(), index, guard);
  const size_t rowDim = windows.rowDim, columnDim = windows.columnDim();
  Known row = quotient(chosen, image[columnDim]);
  Known column =
      combine({chosen, row}, [&](ArrayRef<Expr> x) { return x[0] - x[1] * x[1].integer(image[columnDim]); });
  auto lies = [&](const Windows &steps, const Known &position, size_t dim) {
    Known padded = combine({position}, [&](ArrayRef<Expr> x) { return x[0] + x[0].integer(steps.low); });
    return both(within(position, image[dim]), holdsElement(steps, padded, materialize(index[dim])));
  };
  Guard inside = both(lies(windows.rows, row, rowDim), lies(windows.columns, column, columnDim));
  Index at = index;
  at[rowDim] = dynamicAffine(row, kernel_.space());
  at[columnDim] = dynamicAffine(column, kernel_.space());
  return choose(inside, emit(op.getOperand(), at, both(inside, guard)),
                number(elementKind(op.getResult().getType()), 0));
}

} // namespace gpuc::codegen
