//===- ReduceOps.cpp - Types and costs of reductions ------------------------===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

static Shape withoutDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  Shape kept;
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      kept.push_back(extent);
  return kept;
}

template <typename Op>
static FailureOr<Types> inferReduction(std::optional<Location> location, Value operand,
                                       ArrayRef<int64_t> dims) {
  if (failed(checkDims(location, Op::getOperationName(), "reduction_C1", dims, operand.getType())))
    return failure();
  return Types{withShape(operand, withoutDims(shapeOf(operand), dims))};
}

/// The largest of no elements does not exist, so that an extreme needs at least one.
template <typename Op>
static FailureOr<Types> inferExtreme(std::optional<Location> location, Value operand,
                                     ArrayRef<int64_t> dims) {
  FailureOr<Types> types = inferReduction<Op>(location, operand, dims);
  if (failed(types))
    return failure();
  for (int64_t dim : dims)
    if (shapeOf(operand)[dim] == 0)
      return emitTypeError<Op>(location, "dim ", dim, " of the operand ", operand.getType(),
                               " has no elements to choose from [reduction_C2]");
  return types;
}

#define GPUC_REDUCTION(OP, INFER)                                                                            \
  FailureOr<Types> OP::inferTypes(std::optional<Location> location, Adaptor adaptor) {                       \
    return INFER<OP>(location, adaptor.getOperand(), adaptor.getDims());                                     \
  }                                                                                                          \
  int64_t OP::getFlops() { return elementCount(getOperand().getType()); }

GPUC_REDUCTION(SumOp, inferReduction)
GPUC_REDUCTION(MeanOp, inferExtreme)
GPUC_REDUCTION(ReduceMaxOp, inferExtreme)
GPUC_REDUCTION(ReduceMinOp, inferExtreme)
GPUC_REDUCTION(ProdOp, inferReduction)
#undef GPUC_REDUCTION

FailureOr<Types> ArgmaxOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  int64_t dim = adaptor.getDim();
  if (failed(
          checkDim(location, ArgmaxOp::getOperationName(), "argmax_C1", dim, adaptor.getOperand().getType())))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(adaptor.getOperand());
  if (shape[dim] == 0)
    return emitTypeError<ArgmaxOp>(location, "dim ", dim, " of the operand ", adaptor.getOperand().getType(),
                                   " has no elements to choose from [argmax_C2]");
  auto index = IntegerType::get(adaptor.getOperand().getContext(), 64);
  return Types{RankedTensorType::get(withoutDims(shape, dim), index)};
}

int64_t ArgmaxOp::getFlops() { return elementCount(getOperand().getType()); }

LogicalResult CumsumOp::verify() {
  return checkDim(getLoc(), CumsumOp::getOperationName(), "cumsum_C1", getDim(), getType());
}

} // namespace gpuc::ir
