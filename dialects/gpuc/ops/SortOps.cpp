//===- SortOps.cpp - Types, costs and folders of sort and top_k -------------===//

#include "dialects/gpuc/TypeChecks.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// `dim` is a dimension of the operand (`label`_C1), and not the batch (`label`_C2).
template <typename Op>
static LogicalResult checkSorted(std::optional<Location> location, StringRef label, Value operand,
                                 int64_t dim) {
  if (failed(checkDim(location, Op::getOperationName(), (label + "_C1").str(), dim, operand.getType())))
    return failure();
  if (ShapedType::isDynamic(shapeOf(operand)[dim]))
    return emitTypeError<Op>(location, "the batch of the operand ", operand.getType(),
                             " cannot be put in order [", label, "_C2]");
  return success();
}

/// values and indices of the shape.
static Types typesOf(Value operand, ArrayRef<int64_t> shape) {
  auto index = IntegerType::get(operand.getContext(), 64);
  return {withShape(operand, shape), RankedTensorType::get(shape, index)};
}

FailureOr<Types> SortOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  Value operand = adaptor.getOperand();
  if (failed(checkSorted<SortOp>(location, "sort", operand, adaptor.getDim())))
    return failure();
  return typesOf(operand, shapeOf(operand));
}

FailureOr<Types> TopKOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  Value operand = adaptor.getOperand();
  int64_t dim = adaptor.getDim(), k = adaptor.getK();
  if (failed(checkSorted<TopKOp>(location, "top_k", operand, dim)))
    return failure();
  Shape shape(shapeOf(operand));
  if (k < 1 || k > shape[dim])
    return emitTypeError<TopKOp>(location, "k is ", k, ", but must be at least 1 and at most extent ",
                                 shape[dim], " of dim ", dim, " of the operand ", operand.getType(),
                                 " [top_k_C3]");
  shape[dim] = k;
  return typesOf(operand, shape);
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

int64_t SortOp::getFlops() {
  int64_t extent = std::max<int64_t>(1, shapeOf(getOperand())[getDim()]);
  return elementCount(getOperand().getType()) * llvm::Log2_64_Ceil(extent);
}

int64_t TopKOp::getFlops() { return elementCount(getOperand().getType()) * llvm::Log2_64_Ceil(getK() + 1); }

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

/// One element is in order already, at index 0.
template <typename Op> static LogicalResult foldSingle(Op op, SmallVectorImpl<OpFoldResult> &results) {
  if (shapeOf(op.getOperand())[op.getDim()] != 1)
    return failure();
  results.push_back(op.getOperand());
  results.push_back(splatNumber(IntegerType::get(op.getContext(), 64), 0));
  return success();
}

LogicalResult SortOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}

LogicalResult TopKOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}

/// To choose all is to sort.
LogicalResult TopKOp::canonicalize(TopKOp op, PatternRewriter &rewriter) {
  if (static_cast<int64_t>(op.getK()) != shapeOf(op.getOperand())[op.getDim()])
    return failure();
  rewriter.replaceOpWithNewOp<SortOp>(op, op.getOperand(), op.getDim(), /*descending=*/!op.getSmallest());
  return success();
}

} // namespace gpuc::ir
