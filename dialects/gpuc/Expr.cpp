//===- Expr.cpp - Building gpuc ops as one writes formulas ------------------===//

#include "dialects/gpuc/Expr.h"

using namespace mlir;

namespace gpuc::ir {

Shape allDims(Expr x) { return llvm::to_vector(llvm::seq<int64_t>(x.rank())); }

Shape otherDims(int64_t rank, ArrayRef<int64_t> dims) {
  Shape others;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      others.push_back(dim);
  return others;
}

Expr broadcast(Expr x, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  if (x.shape() == shape)
    return x;
  return x.make<BroadcastOp>(withShape(x, shape), x.value(), dims);
}

Expr broadcastAlong(Expr x, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  return broadcast(x, otherDims(shape.size(), dims), shape);
}

Expr broadcastScalar(Expr x, ArrayRef<int64_t> shape) { return broadcast(x, {}, shape); }

} // namespace gpuc::ir
