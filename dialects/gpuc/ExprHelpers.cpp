//===- ExprHelpers.cpp - Forms that formulas of several ops share -----------===//

#include "dialects/gpuc/ExprHelpers.h"

using namespace mlir;

namespace gpuc::ir {

Type wideElement(Type element) {
  return element.getIntOrFloatBitWidth() < 32 ? Float32Type::get(element.getContext()) : element;
}

RankedTensorType wideType(Value operand, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, wideElement(tensorType(operand).getElementType()));
}

bool isBroadcastable(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  return from.size() <= to.size() &&
         llvm::all_of(llvm::zip_equal(from, to.take_back(from.size())), [](auto extents) {
           auto [own, wanted] = extents;
           return own == wanted || own == 1;
         });
}

/// The dimensions of `to` that `from` has, and does not repeat along.
static Shape keptDims(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  Shape kept;
  size_t lead = to.size() - from.size();
  for (size_t dim = 0; dim < from.size(); ++dim)
    if (from[dim] == to[lead + dim])
      kept.push_back(static_cast<int64_t>(lead + dim));
  return kept;
}

Expr broadcastTo(Expr x, ArrayRef<int64_t> shape) {
  Shape kept = keptDims(x.shape(), shape);
  Shape dense = llvm::map_to_vector(kept, [&](int64_t dim) { return shape[dim]; });
  Expr squeezed = ArrayRef(dense) == x.shape() ? x : reshape(x, withShape(x, dense));
  return broadcast(squeezed, kept, shape);
}

Expr sumTo(Expr x, ArrayRef<int64_t> shape) {
  Shape repeated = otherDims(x.rank(), keptDims(shape, x.shape()));
  Expr total = repeated.empty() ? x : sum(x, repeated);
  return total.shape() == shape ? total : reshape(total, withShape(total, shape));
}

Expr lessLargest(Expr x, int64_t dim) {
  Expr largest = stopGradient(x.make<ReduceMaxOp>(x.value(), dim));
  return x - broadcastAlong(largest, dim, x.shape());
}

} // namespace gpuc::ir
