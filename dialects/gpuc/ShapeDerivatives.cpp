//===- ShapeDerivatives.cpp - VJPs of matmul and of ops that move elements --===//
//
// All of these are linear in what they move, so that their VJP is their transpose: what was repeated is
// summed, what was cut out is padded, what was gathered is scattered.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/VjpHelpers.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

GPUC_RESIDUALS(ReshapeOp)
GPUC_VJP_BODY(ReshapeOp) { return Cotangents{reshape(ct, op.getOperand().getType())}; }

GPUC_RESIDUALS(TransposeOp)
GPUC_VJP_BODY(TransposeOp) { return Cotangents{transpose(ct, invertPermutationVector(op.getPermutation()))}; }

GPUC_RESIDUALS(BroadcastOp)
GPUC_VJP_BODY(BroadcastOp) {
  Shape repeated = otherDims(ct.rank(), op.getDims());
  return Cotangents{repeated.empty() ? ct : sum(ct, repeated)};
}

GPUC_RESIDUALS(ReverseOp)
GPUC_VJP_BODY(ReverseOp) { return Cotangents{ct.make<ReverseOp>(ct.value(), op.getDims())}; }

/// Elements from the first to the last of `count` that lie `stride` apart. An unknown batch, which is only
/// taken whole, is negative and spans nothing here.
static int64_t spanOf(int64_t count, int64_t stride) { return count <= 0 ? 0 : (count - 1) * stride + 1; }

/// Puts each element back where the slice took it from, zeros between and around.
GPUC_RESIDUALS(SliceOp)
GPUC_VJP_BODY(SliceOp) {
  Shape low, high, interior;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(op.getOperand()))) {
    int64_t start = op.getStarts()[dim], stride = op.getStrides()[dim], count = ct.shape()[dim];
    bool whole = ShapedType::isDynamic(extent);
    low.push_back(start);
    high.push_back(whole ? 0 : extent - start - spanOf(count, stride));
    interior.push_back(stride - 1);
  }
  return Cotangents{ct.make<PadOp>(ct.value(), low, high, interior, APFloat(0.0))};
}

/// Takes the operand's elements out of the padding again.
GPUC_RESIDUALS(PadOp)
GPUC_VJP_BODY(PadOp) {
  Shape limits, strides;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(op.getOperand()))) {
    int64_t low = op.getLow()[dim], stride = op.getInterior()[dim] + 1;
    limits.push_back(ShapedType::isDynamic(extent) ? -1 : low + spanOf(extent, stride));
    strides.push_back(stride);
  }
  return Cotangents{ct.make<SliceOp>(ct.value(), op.getLow(), limits, strides)};
}

GPUC_RESIDUALS(ConcatOp)
GPUC_VJP_BODY(ConcatOp) {
  Cotangents pieces;
  Shape starts(ct.rank(), 0), limits(ct.rank(), -1), strides(ct.rank(), 1);
  int64_t dim = op.getDim();
  for (Value operand : op.getOperands()) {
    limits[dim] = starts[dim] + shapeOf(operand)[dim];
    pieces.push_back(ct.make<SliceOp>(ct.value(), starts, limits, strides));
    starts[dim] = limits[dim];
  }
  return pieces;
}

//===----------------------------------------------------------------------===//
// Addresses that are data
//===----------------------------------------------------------------------===//

GPUC_RESIDUALS(GatherOp, getIndices())
GPUC_VJP_BODY(GatherOp) {
  Expr zeros = ct.constant(op.getOperand().getType(), 0);
  Expr scattered =
      ct.make<ScatterAddOp>(zeros.type(), zeros.value(), op.getIndices(), ct.value(), op.getDim());
  return Cotangents{scattered, Value()};
}

GPUC_RESIDUALS(ScatterAddOp, getIndices())
GPUC_VJP_BODY(ScatterAddOp) {
  return Cotangents{ct, Value(), ct.make<GatherOp>(ct.value(), op.getIndices(), op.getDim())};
}

GPUC_RESIDUALS(DynamicSliceOp, getStart())
GPUC_VJP_BODY(DynamicSliceOp) {
  Expr zeros = ct.constant(op.getOperand().getType(), 0);
  return Cotangents{ct.make<DynamicUpdateSliceOp>(zeros.type(), zeros.value(), ct.value(), op.getStart()),
                    Value()};
}

GPUC_RESIDUALS(DynamicUpdateSliceOp, getStart())
GPUC_VJP_BODY(DynamicUpdateSliceOp) {
  Expr zeros = ct.constant(op.getUpdate().getType(), 0);
  Shape sizes;
  for (int64_t extent : zeros.shape())
    sizes.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
  Expr kept = ct.make<DynamicUpdateSliceOp>(ct.type(), ct.value(), zeros.value(), op.getStart());
  return Cotangents{kept, ct.make<DynamicSliceOp>(ct.value(), op.getStart(), sizes), Value()};
}

//===----------------------------------------------------------------------===//
// Matmul
//===----------------------------------------------------------------------===//

static Expr matmul(Expr ct, Value lhs, bool transposeLhs, Value rhs, bool transposeRhs) {
  return ct.make<MatmulOp>(lhs, rhs, transposeLhs, transposeRhs);
}

/// With C = op(A) · op(B): d op(A) = dC · op(B)ᵀ and d op(B) = op(A)ᵀ · dC, each transposed once more if its
/// operand is stored transposed.
GPUC_RESIDUALS(MatmulOp, getLhs(), getRhs())
GPUC_VJP_BODY(MatmulOp) {
  Value a = op.getLhs(), b = op.getRhs();
  bool ta = op.getTransposeLhs(), tb = op.getTransposeRhs();
  Expr da = ta ? matmul(ct, b, tb, ct, true) : matmul(ct, ct, false, b, !tb);
  Expr db = tb ? matmul(ct, ct, true, a, ta) : matmul(ct, a, !ta, ct, false);
  return Cotangents{da, db};
}

} // namespace gpuc::ir
