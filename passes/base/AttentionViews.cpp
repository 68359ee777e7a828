//===- AttentionViews.cpp - Which attention stays whole, and what it reads ---===//

#include "passes/base/AttentionViews.h"

#include "dialects/gpuc/Tf32.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace gpuc {

bool isAttention(Operation *op) { return isa<ir::AttentionOp, ir::AttentionGradientOp>(op); }

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// The mask's dimensions are aligned with those of the scores at the last one.
static void describeMask(Value mask, AttentionShape &shape) {
  if (!mask)
    return;
  bool isFlags = getElementTypeOrSelf(mask).isInteger(1);
  shape.mask = isFlags ? AttentionMask::flags : AttentionMask::addends;
  ArrayRef<int64_t> extents = ir::shapeOf(mask);
  int64_t stride = 1;
  for (size_t dim = extents.size(); dim-- > 0; stride *= extents[dim])
    if (extents[dim] > 1)
      shape.mask_strides[4 - extents.size() + dim] = stride;
}

template <typename Op> static AttentionShape describe(Op op, AttentionKind kind) {
  ArrayRef<int64_t> queries = ir::shapeOf(op.getQuery()), keys = ir::shapeOf(op.getKey());
  AttentionShape shape;
  shape.kind = kind;
  shape.type = getElementTypeOrSelf(op.getQuery()).isF64() ? DataType::f64 : DataType::f32;
  shape.batch = queries[0];
  shape.heads = queries[1];
  shape.groups = keys[1];
  shape.queries = queries[2];
  shape.keys = keys[2];
  shape.width = queries[3];
  shape.value_width = ir::shapeOf(op.getValue())[3];
  shape.scale = op.getScaleOrDefault();
  shape.causal = op.getCausal();
  shape.dropout = op.getDropout().convertToDouble();
  shape.id = op.getId();
  describeMask(op.getMask(), shape);
  return shape;
}

AttentionShape attentionShapeOf(ir::AttentionOp attention) {
  return describe(attention, AttentionKind::forward);
}

AttentionShape attentionShapeOf(ir::AttentionGradientOp gradient) {
  AttentionShape shape = describe(gradient, AttentionKind::gradient);
  // Most masks are constant, and nobody reads their cotangent.
  shape.mask_gradient = gradient.getMaskCotangent() && !gradient.getMaskCotangent().use_empty();
  return shape;
}

//===----------------------------------------------------------------------===//
// What targets have
//===----------------------------------------------------------------------===//

/// What any kernel asks for, of heads up to `mostWidth` wide.
template <typename Op> static bool fits(Op op, int64_t mostWidth) {
  ArrayRef<int64_t> queries = ir::shapeOf(op.getQuery()), keys = ir::shapeOf(op.getKey()),
                    values = ir::shapeOf(op.getValue());
  auto isExtent = [](int64_t extent) { return extent >= 1 && extent <= INT32_MAX; };
  // What drops everything needs no attention. In a loop the counters, by which it drops, cannot be read.
  bool mayDrop = isa<func::FuncOp>(op->getParentOp());
  return llvm::all_of(queries, isExtent) && llvm::all_of(keys, isExtent) && llvm::all_of(values, isExtent) &&
         keys[3] <= mostWidth && values[3] <= mostWidth && op.getDropout().convertToDouble() < 1 &&
         std::isfinite(op.getScaleOrDefault()) && (mayDrop || op.getDropout().isZero());
}

bool hasHostAttention(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<ir::AttentionOp, ir::AttentionGradientOp>([](auto attention) {
        Type element = getElementTypeOrSelf(attention.getQuery());
        return (element.isF32() || element.isF64()) && fits(attention, kMostAttentionWidth);
      })
      .Default(false);
}

bool hasHostAttentionOfAnyType(ir::AttentionOp attention) { return fits(attention, kMostAttentionWidth); }

/// A block of threads takes at least one tile; a grid holds so many.
template <typename Op> static bool fitsCuda(Op op) {
  ArrayRef<int64_t> queries = ir::shapeOf(op.getQuery()), keys = ir::shapeOf(op.getKey());
  Type element = getElementTypeOrSelf(op.getQuery());
  bool isNarrow = element.isF32() || element.isF16() || element.isBF16();
  return isNarrow && !ir::isTf32(op) && fits(op, kMostCudaAttentionWidth) &&
         queries[0] * queries[1] <= INT32_MAX / std::max(queries[2], keys[2]);
}

/// With dropout, the gradient of 16-bit elements takes a register more than a thread has.
static bool fitsRegisters(ir::AttentionGradientOp gradient) {
  return getElementTypeOrSelf(gradient.getQuery()).isF32() || gradient.getDropout().isZero();
}

bool hasCudaAttention(Operation *op) {
  if (auto attention = dyn_cast<ir::AttentionOp>(op))
    return fitsCuda(attention);
  auto gradient = dyn_cast<ir::AttentionGradientOp>(op);
  bool ofMask = gradient && gradient.getMaskCotangent() && !gradient.getMaskCotangent().use_empty();
  return gradient && !ofMask && fitsCuda(gradient) && fitsRegisters(gradient);
}

bool dropsByCounters(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<ir::AttentionOp, ir::AttentionGradientOp>(
          [](auto attention) { return !attention.getDropout().isZero(); })
      .Default(false);
}

//===----------------------------------------------------------------------===//
// Strides
//===----------------------------------------------------------------------===//

/// The strides of a tensor without gaps.
static SmallVector<int64_t, 4> denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

/// The strides of what has `from` and `strides` under the shape `to`; fails if there are none. Dimensions are
/// taken from the end, as many of each side as have one product; what is merged must lie without gaps.
static FailureOr<SmallVector<int64_t, 4>> reshapeStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> strides,
                                                         ArrayRef<int64_t> to) {
  SmallVector<int64_t, 4> result(to.size(), 1);
  size_t source = from.size(), target = to.size();
  while (source > 0 && target > 0) {
    int64_t have = from[--source], want = to[--target], stride = strides[source];
    size_t last = target;
    while (have != want) {
      if (have < want) {
        if (source == 0 || strides[source - 1] != stride * have)
          return failure();
        have *= from[--source];
      } else {
        if (target == 0)
          return failure();
        want *= to[--target];
      }
    }
    for (size_t dim = last + 1; dim-- > target; stride *= to[dim])
      result[dim] = stride;
  }
  // What is left has the extent 1.
  return result;
}

/// The strides of a transpose's operand, its result having these.
static SmallVector<int64_t, 4> stridesBefore(ir::TransposeOp transpose, ArrayRef<int64_t> after) {
  SmallVector<int64_t, 4> strides(after.size());
  for (auto [dim, stride] : llvm::zip_equal(transpose.getPermutation(), after))
    strides[dim] = stride;
  return strides;
}

/// Where the elements of a transpose's operand lie if its result has no gaps.
static SmallVector<int64_t, 4> stridesBefore(ir::TransposeOp transpose) {
  return stridesBefore(transpose, denseStrides(ir::shapeOf(transpose.getResult())));
}

/// What a value passes through, read by nobody else, on its way to a concat, and the concat; else nothing.
static SmallVector<Operation *> pathToConcat(Value value) {
  SmallVector<Operation *> path;
  while (value.hasOneUse()) {
    Operation *reader = path.emplace_back(*value.getUsers().begin());
    if (isa<ir::ConcatOp>(reader))
      return path;
    if (!isa<ir::TransposeOp, ir::ReshapeOp>(reader))
      return {};
    value = reader->getResult(0);
  }
  return {};
}

/// What transposes and reshapes of `value` lead back to.
static Value sourceOf(Value value) {
  while (isa_and_nonnull<ir::TransposeOp, ir::ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// `value` as a view of the concat that ends the path.
static FailureOr<StridedView> viewAlong(ArrayRef<Operation *> path, Value value) {
  auto concat = cast<ir::ConcatOp>(path.back());
  StridedView view{concat.getResult(), 0, denseStrides(ir::shapeOf(concat.getResult()))};
  Value piece = path.size() > 1 ? path.drop_back().back()->getResult(0) : value;
  for (Value before : llvm::make_range(concat.getOperands().begin(), llvm::find(concat.getOperands(), piece)))
    view.offset += ir::shapeOf(before)[concat.getDim()] * view.strides[concat.getDim()];
  for (Operation *op : llvm::reverse(path.drop_back())) {
    auto transpose = dyn_cast<ir::TransposeOp>(op);
    FailureOr<SmallVector<int64_t, 4>> before =
        transpose
            ? stridesBefore(transpose, view.strides)
            : reshapeStrides(ir::shapeOf(op->getResult(0)), view.strides, ir::shapeOf(op->getOperand(0)));
    if (failed(before))
      return failure();
    view.strides = *before;
  }
  return view;
}

/// Whether heads of this shape are one piece of each of some equal rows, which plan-verify asks of what does
/// not lie without gaps.
static bool isPieceOfRows(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  bool headsAdjoin = shape[1] == 1 || strides[1] == shape[3];
  bool batchAdjoins = shape[0] == 1 || shape[2] == 1 || strides[0] == shape[2] * strides[2];
  return headsAdjoin && batchAdjoins;
}

/// The result as a view of the concat that it ends in, if attention can write it there.
static FailureOr<StridedView> viewInConcat(OpResult result) {
  bool isOfHeads = isa<ir::AttentionGradientOp>(result.getOwner()) && result.getResultNumber() < 3;
  SmallVector<Operation *> path = isOfHeads ? pathToConcat(result) : SmallVector<Operation *>();
  if (path.empty())
    return failure();
  FailureOr<StridedView> view = viewAlong(path, result);
  if (failed(view) || !isReadable(ir::shapeOf(result), view->strides) ||
      !isPieceOfRows(ir::shapeOf(result), view->strides))
    return failure();
  return view;
}

StridedView viewOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto result = dyn_cast<OpResult>(value)) {
    if (concatOfResult(result))
      return *viewInConcat(result);
    if (ir::TransposeOp transpose = transposeOfResult(result))
      return {transpose.getResult(), 0, stridesBefore(transpose)};
  }
  if (auto transpose = dyn_cast_or_null<ir::TransposeOp>(op)) {
    StridedView from = viewOf(transpose.getOperand()), view{from.base, from.offset, {}};
    for (int64_t dim : transpose.getPermutation())
      view.strides.push_back(from.strides[dim]);
    return view;
  }
  if (auto slice = dyn_cast_or_null<ir::SliceOp>(op)) {
    StridedView view = viewOf(slice.getOperand());
    for (auto [stride, start, step] : llvm::zip_equal(view.strides, slice.getStarts(), slice.getStrides())) {
      view.offset += start * stride;
      stride *= step;
    }
    return view;
  }
  if (auto reshape = dyn_cast_or_null<ir::ReshapeOp>(op)) {
    StridedView view = viewOf(reshape.getOperand());
    auto strides = reshapeStrides(ir::shapeOf(reshape.getOperand()), view.strides, ir::shapeOf(value));
    if (succeeded(strides))
      return {view.base, view.offset, *strides};
  }
  return {value, 0, denseStrides(ir::shapeOf(value))};
}

bool isReadable(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  bool rowsAdjoin = shape[3] == 1 || strides[3] == 1;
  return rowsAdjoin && (shape[2] == 1 || (strides[2] >= shape[3] && strides[2] <= kMostAttentionRow));
}

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

bool isReadStrided(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto attention = dyn_cast<ir::AttentionOp>(op))
    return operand.get() != attention.getMask();
  auto gradient = dyn_cast<ir::AttentionGradientOp>(op);
  return gradient && operand.get() != gradient.getMask() && operand.get() != gradient.getLogSumExp();
}

bool isAttentionView(Operation *op) {
  return isa<ir::TransposeOp, ir::SliceOp, ir::ReshapeOp>(op) && !op->use_empty() &&
         llvm::all_of(op->getUses(),
                      [](OpOperand &use) { return isReadStrided(use) || isAttentionView(use.getOwner()); });
}

ir::TransposeOp transposeOfResult(OpResult result) {
  if (!isAttention(result.getOwner()) || cast<RankedTensorType>(result.getType()).getRank() != 4)
    return {};
  if (isa<ir::AttentionGradientOp>(result.getOwner()) && result.getResultNumber() == 3)
    return {}; // the mask's cotangent lies as the mask does
  ir::TransposeOp found;
  for (OpOperand &use : result.getUses()) {
    if (isReadStrided(use))
      continue;
    auto transpose = dyn_cast<ir::TransposeOp>(use.getOwner());
    if (!transpose || found || isAttentionView(transpose))
      return {};
    found = transpose;
  }
  return found && isReadable(ir::shapeOf(result), stridesBefore(found)) ? found : ir::TransposeOp();
}

ir::ConcatOp concatOfResult(OpResult result) {
  if (failed(viewInConcat(result)))
    return {};
  auto concat = cast<ir::ConcatOp>(pathToConcat(result).back());
  bool areResults = llvm::all_of(concat.getOperands(), [&](Value operand) {
    auto other = dyn_cast<OpResult>(sourceOf(operand));
    return other && other.getOwner() == result.getOwner() && succeeded(viewInConcat(other));
  });
  return areResults ? concat : ir::ConcatOp();
}

bool isResultView(Operation *op) {
  if (!isa<ir::TransposeOp, ir::ReshapeOp, ir::ConcatOp>(op))
    return false;
  auto result = dyn_cast<OpResult>(sourceOf(op->getOperand(0)));
  return result && isAttention(result.getOwner()) &&
         (transposeOfResult(result) == op || concatOfResult(result));
}

} // namespace gpuc
