//===- ShapeOps.cpp - Types of ops that move elements -----------------------===//

#include "dialects/gpuc/NumberText.h"
#include "dialects/gpuc/TypeChecks.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace gpuc::ir {

static bool hasBatch(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  return !shape.empty() && ShapedType::isDynamic(shape.front());
}

LogicalResult ReshapeOp::verify() {
  auto from = tensorType(getOperand()), to = getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "operand " << from << " and result " << to
                         << " differ in element type [reshape_C1]";
  if (elementCount(from) != elementCount(to))
    return emitOpError() << "operand " << from << " has " << elementCount(from) << " elements, result " << to
                         << " has " << elementCount(to) << " [reshape_C2]";
  if (hasBatch(getOperand()) != hasBatch(getResult()))
    return emitOpError() << "operand " << from << " and result " << to
                         << " must both have the batch in front, or neither [reshape_C3]";
  return success();
}

FailureOr<Types> TransposeOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  Value operand = adaptor.getOperand();
  ArrayRef<int64_t> permutation = adaptor.getPermutation(), shape = shapeOf(operand);
  if (permutation.size() != shape.size() || !isPermutationVector(permutation))
    return emitTypeError<TransposeOp>(location, "permutation must name each dimension of the operand ",
                                      operand.getType(), " once [transpose_C1]");
  if (hasBatch(operand) && permutation[0] != 0)
    return emitTypeError<TransposeOp>(location, "the batch of the operand ", operand.getType(),
                                      " must stay in front [transpose_C2]");
  return Types{withShape(operand, applyPermutation(shape, permutation))};
}

LogicalResult BroadcastOp::verify() {
  auto from = tensorType(getOperand()), to = getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "operand " << from << " and result " << to
                         << " differ in element type [broadcast_C1]";
  if (getDims().size() != static_cast<size_t>(from.getRank()))
    return emitOpError() << "dims has " << getDims().size() << " entries, but the operand is " << from
                         << " [broadcast_C2]";
  if (failed(checkDims(getLoc(), BroadcastOp::getOperationName(), "broadcast_C3", getDims(), to)))
    return failure();
  for (auto [dim, target] : llvm::enumerate(getDims()))
    if (from.getDimSize(dim) != to.getDimSize(target))
      return emitOpError() << "dimension " << dim << " of the operand " << from
                           << " is paired with dimension " << target << " of the result " << to
                           << ": their extents differ [broadcast_C4]";
  return success();
}

/// Extents of operand[starts : limits : strides]; a limit of -1 is the operand's extent.
FailureOr<Types> SliceOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  Value operand = adaptor.getOperand();
  ArrayRef<int64_t> starts = adaptor.getStarts(), limits = adaptor.getLimits(),
                    strides = adaptor.getStrides();
  size_t rank = shapeOf(operand).size();
  if (starts.size() != rank || limits.size() != rank || strides.size() != rank)
    return emitTypeError<SliceOp>(
        location, "starts, limits and strides must have one entry for each dimension of the operand ",
        operand.getType(), " [slice_C1]");
  Shape shape;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(operand))) {
    bool whole = starts[dim] == 0 && limits[dim] == -1 && strides[dim] == 1;
    int64_t limit = limits[dim] == -1 ? extent : limits[dim];
    if (ShapedType::isDynamic(extent) && !whole)
      return emitTypeError<SliceOp>(location, "the batch of the operand ", operand.getType(),
                                    " can only be taken whole: start 0, limit -1, stride 1 [slice_C2]");
    if (!whole && (starts[dim] < 0 || starts[dim] > limit || limit > extent))
      return emitTypeError<SliceOp>(location, "start ", starts[dim], " and limit ", limit, " in dimension ",
                                    dim, " do not lie in the operand ", operand.getType(), " [slice_C3]");
    if (strides[dim] < 1)
      return emitTypeError<SliceOp>(location, "stride ", strides[dim], " in dimension ", dim,
                                    " of the operand ", operand.getType(), " must be at least 1 [slice_C4]");
    shape.push_back(whole ? extent : llvm::divideCeil(limit - starts[dim], strides[dim]));
  }
  return Types{withShape(operand, shape)};
}

/// factor · times + offset, all at least 0; as large as can be where that is larger: no tensor has such an
/// extent.
static int64_t saturatedExtent(int64_t factor, int64_t times, int64_t offset) {
  return llvm::checkedMulAdd(factor, times, offset).value_or(std::numeric_limits<int64_t>::max());
}

/// Whether an integer type holds the number; i1 holds 0 and 1.
static bool holds(IntegerType type, const APFloat &number) {
  APSInt integer(type.getWidth(), type.isUnsigned() || type.getWidth() == 1);
  bool isExact = false;
  number.convertToInteger(integer, APFloat::rmTowardZero, &isExact);
  return isExact || number.isZero(); // -0 is not called exact
}

FailureOr<Types> PadOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  Value operand = adaptor.getOperand();
  ArrayRef<int64_t> low = adaptor.getLow(), high = adaptor.getHigh(), interior = adaptor.getInterior();
  size_t rank = shapeOf(operand).size();
  if (low.size() != rank || high.size() != rank || interior.size() != rank)
    return emitTypeError<PadOp>(
        location, "low, high and interior must have one entry for each dimension of the operand ",
        operand.getType(), " [pad_C1]");
  auto integer = dyn_cast<IntegerType>(tensorType(operand).getElementType());
  if (integer && !holds(integer, adaptor.getValue()))
    return emitTypeError<PadOp>(location, "value ", numberText(adaptor.getValue().convertToDouble()),
                                " is not a number of the operand ", operand.getType(), " [pad_C4]");
  Shape shape;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(operand))) {
    if (low[dim] < 0 || high[dim] < 0 || interior[dim] < 0)
      return emitTypeError<PadOp>(location, "dimension ", dim, " of the operand ", operand.getType(),
                                  " is padded by a negative number of elements [pad_C2]");
    if (ShapedType::isDynamic(extent) && (low[dim] || high[dim] || interior[dim]))
      return emitTypeError<PadOp>(location, "the batch of the operand ", operand.getType(),
                                  " cannot be padded [pad_C3]");
    if (ShapedType::isDynamic(extent)) {
      shape.push_back(extent);
      continue;
    }
    int64_t inside = saturatedExtent(interior[dim], std::max<int64_t>(extent - 1, 0), extent);
    shape.push_back(saturatedExtent(1, low[dim], saturatedExtent(1, high[dim], inside)));
  }
  return Types{withShape(operand, shape)};
}

int64_t PadOp::getStep(size_t dim) { return shapeOf(getOperand())[dim] > 1 ? getInterior()[dim] + 1 : 1; }

FailureOr<Types> ConcatOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  if (adaptor.getOperands().empty())
    return emitTypeError<ConcatOp>(location, "needs at least one operand [concat_C1]");
  Value first = adaptor.getOperands().front();
  int64_t dim = adaptor.getDim();
  if (failed(checkDim(location, ConcatOp::getOperationName(), "concat_C2", dim, first.getType())))
    return failure();
  Shape shape(shapeOf(first));
  if (ShapedType::isDynamic(shape[dim]))
    return emitTypeError<ConcatOp>(location, "operand #0 ", first.getType(),
                                   " cannot be joined along the batch [concat_C3]");
  for (auto [index, operand] : llvm::enumerate(adaptor.getOperands().drop_front())) {
    Shape expected = shape;
    bool ranked = tensorType(operand).getRank() == static_cast<int64_t>(shape.size());
    expected[dim] = ranked ? shapeOf(operand)[dim] : 0;
    if (operand.getType() != withShape(first, expected) || ShapedType::isDynamic(expected[dim]))
      return emitTypeError<ConcatOp>(location, "operand #", index + 1, " is ", operand.getType(),
                                     ", which differs from ", first.getType(),
                                     " elsewhere than in dimension ", dim, " [concat_C4]");
    shape[dim] = saturatedExtent(1, shape[dim], expected[dim]);
  }
  return Types{withShape(first, shape)};
}

LogicalResult ReverseOp::verify() {
  if (failed(checkDims(getLoc(), ReverseOp::getOperationName(), "reverse_C1", getDims(), getType())))
    return failure();
  if (hasBatch(getOperand()) && !getDims().empty() && getDims().front() == 0)
    return emitOpError() << "the batch of the operand " << getType() << " cannot be reversed [reverse_C2]";
  return success();
}

/// A reshape is another name for its operand's buffer.
int64_t ReshapeOp::getBytes() { return 0; }
/// What is not in the slice is not read.
int64_t SliceOp::getBytes() { return 2 * sizeInBytes(getType()); }

} // namespace gpuc::ir
