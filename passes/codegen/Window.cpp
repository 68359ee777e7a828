//===- Window.cpp - Pooling, one element at a time --------------------------===//
//
// An element of a pooling folds its window, row by row; an element of a pooling's gradient the windows that
// hold it, last to first. Neither reads what another element wrote, so that all are independent.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/ElementEmitter.h"
#include "passes/codegen/Loops.h"
#include "passes/codegen/Pointwise.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

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

State ElementEmitter::overWindow(
    const Windows2d &windows, ArrayRef<int64_t> image, const Index &window, const State &start,
    llvm::function_ref<State(const Index &, const Steps &, const Guard &, State)> body) {
  Index at = window;
  Steps taken;
  auto along = [&](size_t dim, const Windows &steps, Known &stepped, const State &state,
                   llvm::function_ref<State(const Guard &, State)> inner) {
    Affine first = scaled(window[dim], steps.stride, -steps.low);
    return forSteps(steps.size, state, [&](const Affine &step, State carried) {
      at[dim] = sum(first, step, steps.dilation);
      stepped = materialize(step);
      Guard inside;
      if (leavesImage(steps, image[dim]) && whereIs(at[dim], image[dim]) != Where::Inside)
        inside = within(materialize(at[dim]), image[dim]);
      return inner(inside, carried);
    });
  };
  return along(windows.rowDim, windows.rows, taken.row, start, [&](const Guard &rowInside, State state) {
    return along(windows.columnDim(), windows.columns, taken.column, state,
                 [&](const Guard &columnInside, State carried) {
                   return body(at, taken, both(columnInside, rowInside), carried);
                 });
  });
}

Known ElementEmitter::placeInWindow(const Windows2d &windows, const Steps &steps) {
  Known down = combine({steps.row}, [&](ArrayRef<Expr> x) {
    Expr row = narrow(x[0], builder_.getI32Type());
    return row * row.integer(windows.columns.size);
  });
  return combine({down, steps.column},
                 [&](ArrayRef<Expr> x) { return x[0] + narrow(x[1], builder_.getI32Type()); });
}

Known ElementEmitter::indexInImage(const Windows2d &windows, ArrayRef<int64_t> image, const Index &at) {
  return combine({materialize(at[windows.rowDim]), materialize(at[windows.columnDim()])},
                 [&](ArrayRef<Expr> x) { return x[0] * x[0].integer(image[windows.columnDim()]) + x[1]; });
}

Known ElementEmitter::emitMaxPool(MaxPool2dOp op, unsigned result, const Index &index, const Guard &guard) {
  ArrayRef<int64_t> image = shapeOf(op.getOperand());
  ElementKind kind = elementKind(op.getOperand().getType());
  Windows2d windows = windowsOf(op);
  // Narrow ones are found as i32, beside values of 32 bits.
  const bool isNarrow = arePlaces(op.getIndices());
  const ElementKind found = isNarrow ? ElementKind::I32 : ElementKind::I64;
  Expr lowest = toCompute(numberIn(builder_, kind, lanes_, -std::numeric_limits<double>::infinity()), kind);
  Expr none = constantInt(builder_, registerType(builder_.getContext(), found, lanes_), -1);
  State best =
      overWindow(windows, image, index, {lowest, none},
                 [&](const Index &at, const Steps &steps, const Guard &inside, State best) {
                   Expr element = toCompute(widened(emit(op.getOperand(), at, both(guard, inside))), kind);
                   Expr place =
                       widened(isNarrow ? placeInWindow(windows, steps) : indexInImage(windows, image, at));
                   // The first, whatever it is; then what is larger; then the first NaN.
                   Expr better = less(best[1], best[1].integer(0)) | greater(element, best[0]) |
                                 (isNan(element) & equal(best[0], best[0]));
                   if (inside.expr)
                     better = better & widened(inside);
                   return State{select(better, element, best[0]), select(better, place, best[1])};
                 });
  Expr indexed = castElement(best[1], found, elementKind(op.getIndices().getType()));
  Known values{fromCompute(best[0], kind), level()}, indices{indexed, level()};
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
  // Each a float by itself: of the lanes' columns one conversion, and one product for each row.
  auto inside = [&](const Windows &steps, int64_t extent, const Known &position) {
    return combine({elementsInside(steps, extent, position)}, [&](ArrayRef<Expr> x) {
      return toFloat(narrow(x[0], builder_.getI32Type()), getElementTypeOrSelf(compute));
    });
  };
  Known count = combine({inside(windows.rows, rows, row), inside(windows.columns, columns, column)},
                        [](ArrayRef<Expr> x) { return x[0] * x[1]; });
  return widened(count);
}

Known ElementEmitter::emitOp(AvgPool2dOp op, const Index &index, const Guard &guard) {
  ArrayRef<int64_t> image = shapeOf(op.getOperand());
  ElementKind kind = elementKind(op.getOperand().getType());
  Windows2d windows = windowsOf(op);
  Expr zero = toCompute(numberIn(builder_, kind, lanes_, 0), kind);
  State sum = overWindow(
      windows, image, index, {zero}, [&](const Index &at, const Steps &, const Guard &inside, State sum) {
        Expr element = toCompute(widened(emit(op.getOperand(), at, both(guard, inside))), kind);
        return State{sum[0] + (inside.expr ? select(widened(inside), element, zero) : element)};
      });
  Expr count = divisor(windows, image, op.getExcludePadding(), index, zero.type());
  return {fromCompute(sum[0] / count, kind), level()};
}

//===----------------------------------------------------------------------===//
// From an element to its windows
//===----------------------------------------------------------------------===//

std::optional<ElementEmitter::SharedWindows> ElementEmitter::sharedBy(const Windows &windows,
                                                                      const Affine &padded) const {
  const int64_t stride = windows.stride;
  // Loops over lanes begin at multiples of their number.
  if (lanes_ < 8 || stride == 1 || lanes_ % stride != 0 || padded.isDynamic)
    return std::nullopt;
  for (auto [number, group] : llvm::enumerate(kernel_.groups)) {
    const int64_t coefficient = padded.coefficients[group.last];
    if (number == laneGroup_ ? coefficient != 1 : coefficient % stride != 0)
      return std::nullopt;
  }
  return SharedWindows{stride, llvm::mod(padded.constant, stride)};
}

Expr ElementEmitter::spread(const Known &read, const HoldingWindow &window) {
  if (!window.shared || !read.isVector())
    return widened(read);
  SmallVector<int32_t> from;
  for (int64_t lane = 0; lane < lanes_; ++lane)
    from.push_back((lane + window.shared->remainder) / window.shared->stride);
  Value lanes = read.expr.value();
  return at(read.level,
            [&] { return Expr(builder_, LLVM::ShuffleVectorOp::create(builder_, lanes, lanes, from)); })
      .expr;
}

State ElementEmitter::alongHolding(const Windows &windows, size_t dim, int64_t pooled, const Index &element,
                                   bool mayShare, Known &steps, HoldingWindow &window, const State &state,
                                   llvm::function_ref<State(const Holds &, State)> inner) {
  const Affine padded = scaled(element[dim], 1, windows.low);
  const std::optional<SharedWindows> shared = mayShare ? sharedBy(windows, padded) : std::nullopt;
  if (shared)
    window.shared = shared;
  // The last window that begins at the element or before it: of shared ones that of lane 0, where the lanes'
  // own are as many further on as `ahead` says.
  Known ahead, last;
  int64_t laneStride;
  if (shared) {
    last = quotient(staticPart(padded, laneStride), windows.stride);
    ahead = at(last.level, [&] {
      Expr numbers = laneNumbers();
      return divideUnsigned(numbers + numbers.integer(shared->remainder), windows.stride);
    });
  } else {
    last = quotient(materialize(padded), windows.stride);
  }
  return forSteps(windows.sharing(), state, [&](const Affine &step, State carried) {
    auto stepped = [&](const Known &from) {
      return combine({from, materialize(step)}, [](ArrayRef<Expr> x) { return x[0] - x[1]; });
    };
    Known number, offset; // of the window that may hold the element, and of the element in it
    Holds holds;
    if (shared) {
      // One window behind the other, as the lane group's coordinates are.
      const Known first = coordinates_[laneGroup_].first;
      window.position[dim] =
          sum(coordinate(kernel_.groups[laneGroup_].last, kernel_.space()),
              dynamicAffine(combine({stepped(last), first}, [](ArrayRef<Expr> x) { return x[0] - x[1]; }),
                            kernel_.space()),
              1);
      holds.readable = within(materialize(window.position[dim]), pooled);
      number = combine({stepped(last), ahead}, [](ArrayRef<Expr> x) { return x[0] + x[1]; });
      // From where lane 0's last window begins.
      Known place = at(last.level, [&] {
        Expr numbers = laneNumbers();
        return numbers + numbers.integer(shared->remainder);
      });
      Known begins = combine({ahead, materialize(step)}, [](ArrayRef<Expr> x) { return x[0] - x[1]; });
      offset = minusProduct(place, begins, windows.stride);
    } else {
      window.position[dim] = windows.stride == 1 ? codegen::sum(padded, step, -1)
                                                 : dynamicAffine(stepped(last), kernel_.space());
      number = materialize(window.position[dim]);
      offset = offsetIn(windows, materialize(padded), number);
    }
    holds.element = both(within(number, pooled), holdsElement(windows, offset));
    if (!shared)
      holds.readable = holds.element;
    steps = quotient(offset, windows.dilation);
    return inner(holds, carried);
  });
}

Expr ElementEmitter::overHoldingWindows(const Windows2d &windows, ArrayRef<int64_t> pooled,
                                        const Index &element, Expr zero, const Guard &guard,
                                        llvm::function_ref<Expr(const HoldingWindow &)> term) {
  // A guard of the elements says nothing of windows that they share.
  const bool mayShare = !guard.expr || !guard.isVector();
  HoldingWindow window;
  window.position = element;
  const size_t row = windows.rowDim, column = windows.columnDim();
  State total = alongHolding(
      windows.rows, row, pooled[row], element, mayShare, window.steps.row, window, {zero},
      [&](const Holds &down, State state) {
        return alongHolding(windows.columns, column, pooled[column], element, mayShare, window.steps.column,
                            window, state, [&](const Holds &across, State carried) {
                              window.readable = both(both(down.readable, across.readable), guard);
                              Guard holds = both(down.element, across.element);
                              return State{carried[0] + select(widened(holds), term(window), zero)};
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

Known ElementEmitter::minusProduct(const Known &a, const Known &b, int64_t factor) {
  return combine({a, b}, [&](ArrayRef<Expr> x) { return x[0] - x[1] * x[1].integer(factor); });
}

Known ElementEmitter::offsetIn(const Windows &windows, const Known &padded, const Known &window) {
  return minusProduct(padded, window, windows.stride);
}

ElementEmitter::Guard ElementEmitter::holdsElement(const Windows &windows, const Known &offset) {
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
  const bool isNarrow = arePlaces(op.getIndices());
  const ElementKind stored = elementKind(op.getIndices().getType());
  auto term = [&](const HoldingWindow &window) {
    Known indices = emit(op.getIndices(), window.position, window.readable);
    Expr chosen =
        castElement(spread(indices, window), stored, isNarrow ? ElementKind::I32 : ElementKind::I64);
    Expr cotangent = spread(emit(op.getCotangent(), window.position, window.readable), window);
    Known own = isNarrow ? placeInWindow(windows, window.steps)
                         : indexInImage(windows, shapeOf(op.getResult()), index);
    return select(equal(chosen, widened(own)), toCompute(cotangent, kind), zero);
  };
  Expr total = overHoldingWindows(windows, shapeOf(op.getIndices()), index, zero, guard, term);
  return {fromCompute(total, kind), level()};
}

Known ElementEmitter::emitOp(AvgPool2dGradientOp op, const Index &index, const Guard &guard) {
  ElementKind kind = elementKind(op.getResult().getType());
  ArrayRef<int64_t> image = shapeOf(op.getResult());
  Windows2d windows = windowsOf(op);
  Expr zero = toCompute(numberIn(builder_, kind, lanes_, 0), kind);
  auto term = [&](const HoldingWindow &window) {
    Expr cotangent = toCompute(widened(emit(op.getCotangent(), window.position, window.readable)), kind);
    Expr share = cotangent / divisor(windows, image, op.getExcludePadding(), window.position, zero.type());
    return spread({share, level()}, window);
  };
  Expr total = overHoldingWindows(windows, shapeOf(op.getCotangent()), index, zero, guard, term);
  return {fromCompute(total, kind), level()};
}

/// The element that the window's index names, if it lies in the window.
Known ElementEmitter::emitOp(MaxPool2dGatherOp op, const Index &index, const Guard &guard) {
  Windows2d windows = windowsOf(op);
  Known chosen = emit(op.getIndices(), index, guard);
  const Chosen element = arePlaces(op.getIndices())
                             ? chosenInWindow(windows, shapeOf(op.getOperand()), chosen, index)
                             : chosenInImage(windows, shapeOf(op.getOperand()), chosen, index);
  Index at = index;
  at[windows.rowDim] = dynamicAffine(element.row, kernel_.space());
  at[windows.columnDim()] = dynamicAffine(element.column, kernel_.space());
  return choose(element.inside, emit(op.getOperand(), at, both(element.inside, guard)),
                number(elementKind(op.getResult().getType()), 0));
}

ElementEmitter::Chosen ElementEmitter::chosenInImage(const Windows2d &windows, ArrayRef<int64_t> image,
                                                     const Known &chosen, const Index &window) {
  const int64_t width = image[windows.columnDim()];
  Known row = quotient(chosen, width), column = minusProduct(chosen, row, width);
  auto lies = [&](const Windows &steps, const Known &position, size_t dim) {
    Known padded = combine({position}, [&](ArrayRef<Expr> x) { return x[0] + x[0].integer(steps.low); });
    Known offset = offsetIn(steps, padded, materialize(window[dim]));
    return both(within(position, image[dim]), holdsElement(steps, offset));
  };
  return {row, column,
          both(lies(windows.rows, row, windows.rowDim), lies(windows.columns, column, windows.columnDim()))};
}

ElementEmitter::Chosen ElementEmitter::chosenInWindow(const Windows2d &windows, ArrayRef<int64_t> image,
                                                      const Known &chosen, const Index &window) {
  const int64_t width = windows.columns.size;
  Known place = combine({chosen}, [&](ArrayRef<Expr> x) {
    return x[0].bitWidth() == 8 ? zeroExtend(x[0], builder_.getI64Type())
                                : extend(x[0], builder_.getI64Type());
  });
  Known down = quotient(place, width), across = minusProduct(place, down, width);
  auto position = [&](const Windows &steps, const Known &taken, size_t dim) {
    Known first = materialize(scaled(window[dim], steps.stride, -steps.low));
    return minusProduct(first, taken, -steps.dilation);
  };
  Known row = position(windows.rows, down, windows.rowDim),
        column = position(windows.columns, across, windows.columnDim());
  Guard inImage = both(within(row, image[windows.rowDim]), within(column, image[windows.columnDim()]));
  return {row, column, both(within(down, windows.rows.size), inImage)};
}

} // namespace gpuc::codegen
