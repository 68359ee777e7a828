//===- ContractOps.cpp - Types and costs of contractions --------------------===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

/// Rows and columns of a matmul operand as the product sees them.
static std::pair<int64_t, int64_t> matrixExtents(Value operand, bool transposed) {
  ArrayRef<int64_t> shape = shapeOf(operand).take_back(2);
  return transposed ? std::pair(shape[1], shape[0]) : std::pair(shape[0], shape[1]);
}

FailureOr<Types> MatmulOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  Value lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
  auto fail = [&](auto... text) {
    return emitTypeError<MatmulOp>(location, "lhs ", lhs.getType(), " and rhs ", rhs.getType(), " ", text...);
  };
  if (tensorType(lhs).getElementType() != tensorType(rhs).getElementType())
    return fail("differ in element type [matmul_C1]");
  int64_t lhsRank = tensorType(lhs).getRank(), rhsRank = tensorType(rhs).getRank();
  bool shared = rhsRank == 2 && lhsRank > 2;
  if (lhsRank < 2 || (lhsRank != rhsRank && !shared))
    return fail("must have one rank, at least 2, or rhs just 2 [matmul_C2]");
  ArrayRef<int64_t> batch = shapeOf(lhs).drop_back(2);
  if (!shared && batch != shapeOf(rhs).drop_back(2))
    return fail("differ before their last two dimensions [matmul_C3]");
  if (shared && adaptor.getTransposeLhs())
    return fail("cannot be multiplied: with one rhs for all, lhs is not transposed [matmul_C6]");
  auto [rows, lhsInner] = matrixExtents(lhs, adaptor.getTransposeLhs());
  auto [rhsInner, columns] = matrixExtents(rhs, adaptor.getTransposeRhs());
  if (lhsInner != rhsInner)
    return fail("are contracted over ", extentText(lhsInner), " and ", extentText(rhsInner),
                " elements [matmul_C4]");
  Shape shape(batch);
  shape.append({rows, columns});
  RankedTensorType type = withShape(lhs, shape);
  if (!hasStaticOrBatchShape(type))
    return fail("give ", type, ", where the batch no longer leads [matmul_C5]");
  return Types{type};
}

bool MatmulOp::hasSharedRhs() { return shapeOf(getRhs()).size() < shapeOf(getLhs()).size(); }

ProductExtents MatmulOp::getExtents() {
  auto [m, k] = matrixExtents(getLhs(), getTransposeLhs());
  ProductExtents extents{.m = m, .n = shapeOf(getResult()).back(), .k = k};
  for (int64_t extent : shapeOf(getResult()).drop_back(2))
    (hasSharedRhs() ? extents.m : extents.batch) *= extent;
  return extents;
}

int64_t MatmulOp::getFlops() {
  int64_t inner = matrixExtents(getLhs(), getTransposeLhs()).second;
  return 2 * elementCount(getType()) * (ShapedType::isDynamic(inner) ? 1 : inner);
}

} // namespace gpuc::ir
