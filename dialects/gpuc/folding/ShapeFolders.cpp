//===- ShapeFolders.cpp - Moves that move nothing, and moves of moves -------===//

#include "dialects/gpuc/TypeChecks.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <cmath>

using namespace mlir;

namespace gpuc::ir {

static bool isIota(ArrayRef<int64_t> dims) {
  for (auto [index, dim] : llvm::enumerate(dims))
    if (dim != static_cast<int64_t>(index))
      return false;
  return true;
}

static bool isZero(ArrayRef<int64_t> numbers) {
  return llvm::all_of(numbers, [](int64_t number) { return number == 0; });
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  if (Attribute splat = splatOf(adaptor.getOperand()))
    return splat;
  auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getOperand());
  return dense ? OpFoldResult(dense.reshape(getType())) : OpFoldResult();
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIota(getPermutation()))
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<TransposeOp>()) {
    // Result dimension i is dimension p[i] of the inner result, which is dimension q[p[i]] of its operand.
    setPermutation(applyPermutation(inner.getPermutation(), getPermutation()));
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return splatOf(adaptor.getOperand());
}

/// For each dimension of the smaller shape its place in the larger one, which has extents of 1 besides; none
/// if the larger one has anything else.
static std::optional<Shape> placesBetweenOnes(ArrayRef<int64_t> smaller, ArrayRef<int64_t> larger) {
  Shape places;
  for (auto [place, extent] : llvm::enumerate(larger)) {
    if (places.size() < smaller.size() && smaller[places.size()] == extent)
      places.push_back(static_cast<int64_t>(place));
    else if (extent != 1)
      return std::nullopt;
  }
  return places.size() == smaller.size() ? std::optional(places) : std::nullopt;
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  // Extents of 1 need not be there before they repeat.
  if (auto reshape = getOperand().getDefiningOp<ReshapeOp>())
    if (auto places = placesBetweenOnes(shapeOf(reshape.getOperand()), shapeOf(reshape))) {
      Shape dims;
      for (int64_t place : *places)
        dims.push_back(getDims()[place]);
      setDims(dims);
      getOperandMutable().assign(reshape.getOperand());
      return getResult();
    }
  if (auto inner = getOperand().getDefiningOp<BroadcastOp>()) {
    Shape dims;
    for (int64_t dim : inner.getDims())
      dims.push_back(getDims()[dim]);
    setDims(dims);
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return splatOf(adaptor.getOperand());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType() && isZero(getStarts()))
    return getOperand();
  return splatOf(adaptor.getOperand());
}

OpFoldResult PadOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  // Around a constant of the same value there is only more of it.
  Attribute splat = splatOf(adaptor.getOperand());
  double value = getValue().convertToDouble();
  return splat && splat == splatNumber(getType().getElementType(), value) ? splat : Attribute();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getOperands().size() == 1 ? OpFoldResult(getOperands().front()) : OpFoldResult();
}

OpFoldResult ReverseOp::fold(FoldAdaptor adaptor) {
  if (getDims().empty())
    return getOperand();
  auto inner = getOperand().getDefiningOp<ReverseOp>();
  if (inner && inner.getDims() == getDims())
    return inner.getOperand();
  return splatOf(adaptor.getOperand());
}

/// Sums of equal whole numbers that stay exact in every order of adding: up to 2^(digits of the type).
static OpFoldResult foldWholeSum(FloatAttr number, int64_t count) {
  double value = number.getValueAsDouble(), total = value * static_cast<double>(count);
  double exact = std::exp2(cast<FloatType>(number.getType()).getFPMantissaWidth());
  bool isWhole =
      value == std::floor(value) && std::abs(total) <= exact && static_cast<double>(count) <= exact;
  return isWhole ? OpFoldResult(splatNumber(number.getType(), total)) : OpFoldResult();
}

OpFoldResult SumOp::fold(FoldAdaptor adaptor) {
  if (getDims().empty())
    return getOperand();
  auto number = dyn_cast_or_null<FloatAttr>(splatOf(adaptor.getOperand()));
  int64_t count = 1;
  for (int64_t dim : getDims()) {
    if (ShapedType::isDynamic(shapeOf(getOperand())[dim]))
      return {};
    count *= shapeOf(getOperand())[dim];
  }
  return number && count > 0 ? foldWholeSum(number, count) : OpFoldResult();
}

/// The operand of a transpose that swaps just the last two dimensions, or null.
static Value swappedMatrix(Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose || transpose.getPermutation().size() < 2)
    return {};
  Shape permutation(transpose.getPermutation());
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return isIota(permutation) ? transpose.getOperand() : Value();
}

/// A transpose that feeds a matmul is a flag of the matmul.
OpFoldResult MatmulOp::fold(FoldAdaptor) {
  if (Value lhs = swappedMatrix(getLhs()); lhs && !hasSharedRhs()) {
    getLhsMutable().assign(lhs);
    setTransposeLhs(!getTransposeLhs());
    return getResult();
  }
  if (Value rhs = swappedMatrix(getRhs())) {
    getRhsMutable().assign(rhs);
    setTransposeRhs(!getTransposeRhs());
    return getResult();
  }
  return {};
}

} // namespace gpuc::ir
