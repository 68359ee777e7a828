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
    int64_t low = op.getLow()[dim], stride = op.getStep(dim);
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
// Order
//===----------------------------------------------------------------------===//

/// Up to this many chosen elements a row are looked for from every place: `extent` times as many comparisons,
/// but all in one kernel, in parallel, at any batch, and with derivatives of the same kind.
constexpr int64_t mostComparedResults = 64;

/// The row-major position of each element that `indices` (…, k, …) names in a tensor (…, extent, …).
static Expr flatPositions(Expr indices, int64_t dim, int64_t extent) {
  Shape shape(indices.shape());
  shape[dim] = extent;
  int64_t stride = 1;
  Expr position;
  for (int64_t d = indices.rank() - 1; d >= 0; --d) {
    Expr coordinate = d == dim ? indices : indices.make<IotaOp>(indices.type(), d);
    Expr step = coordinate * static_cast<double>(stride);
    position = position.value() ? position + step : step;
    stride *= shape[d];
  }
  return position;
}

/// Σ_j ct[…, j, …] where indices[…, j, …] is i: no two are equal, so that at most one term is not zero.
static Expr collectByComparison(Expr ct, Expr indices, int64_t dim, int64_t extent) {
  Shape wide(ct.shape()); // (…, extent, k, …)
  wide.insert(wide.begin() + dim, extent);
  Shape others = otherDims(wide.size(), dim);
  Expr places = ct.make<IotaOp>(withShape(indices, extent), 0);
  Expr isHere = broadcast(indices, others, wide) == broadcast(places, dim, wide);
  return sum(select(isHere, broadcast(ct, others, wide), 0.0), dim + 1);
}

/// The transpose of choosing: ct (…, k, …) goes to the k places along `dim` that `chosen` names, zeros to the
/// others. No place is named twice.
static FailureOr<Value> putBack(Operation *op, Expr ct, Value chosen, int64_t dim) {
  auto type = tensorType(op->getOperand(0));
  Expr indices = ct.at(chosen);
  int64_t extent = type.getDimSize(dim), count = ct.shape()[dim];
  if (count <= mostComparedResults)
    return collectByComparison(ct, indices, dim, extent).value();
  if (!type.hasStaticShape())
    return op->emitOpError() << "operand " << type << " has a batch that is not bound yet: run "
                             << "gpuc-specialize-batch first";
  if (count == extent) {
    // All were chosen. What sorts the indices is the inverse permutation, row by row in parallel, which a
    // scatter to any place is not.
    auto inverse = ct.makeOp<SortOp>(chosen, dim, /*descending=*/false);
    Expr flat = reshape(ct, withShape(ct, type.getNumElements()));
    Expr positions = flatPositions(ct.at(inverse.getIndices()), dim, extent);
    return ct.make<GatherOp>(flat.value(), positions.value(), 0).value();
  }
  Expr zeros = ct.constant(withShape(ct, type.getNumElements()), 0);
  Expr scattered = ct.make<ScatterAddOp>(zeros.type(), zeros.value(),
                                         flatPositions(indices, dim, extent).value(), ct.value(), 0);
  return reshape(scattered, type).value();
}

template <typename Op> static FailureOr<Cotangents> putBackAll(Op op, Expr ct) {
  FailureOr<Value> cotangent = putBack(op, ct, op.getIndices(), op.getDim());
  if (failed(cotangent))
    return failure();
  return Cotangents{*cotangent};
}

GPUC_RESIDUALS(SortOp, getIndices())
GPUC_VJP_BODY(SortOp) { return putBackAll(op, ct); }
GPUC_RESIDUALS(TopKOp, getIndices())
GPUC_VJP_BODY(TopKOp) { return putBackAll(op, ct); }

//===----------------------------------------------------------------------===//
// Matmul
//===----------------------------------------------------------------------===//

static Expr matmul(Expr ct, Value lhs, bool transposeLhs, Value rhs, bool transposeRhs) {
  return ct.make<MatmulOp>(lhs, rhs, transposeLhs, transposeRhs);
}

/// The rows of all of x's matrices as one matrix.
static Expr asRows(Expr x) {
  int64_t rows = 1;
  for (int64_t extent : x.shape().drop_back())
    rows *= extent;
  return reshape(x, withShape(x, {rows, x.shape().back()}));
}

/// d B of C = A · B with one B for all of A's matrices: the sum over them of Aᵀ · dC, one product of all
/// their rows where their number is known.
static Expr sharedRhsCotangent(MatmulOp op, Expr ct) {
  Expr a = ct.at(op.getLhs());
  bool transposed = op.getTransposeRhs();
  auto product = [&](Expr a, Expr ct) {
    return transposed ? matmul(ct, ct, true, a, false) : matmul(ct, a, true, ct, false);
  };
  if (a.type().hasStaticShape())
    return product(asRows(a), asRows(ct));
  return sum(product(a, ct), llvm::to_vector(llvm::seq<int64_t>(0, a.rank() - 2)));
}

/// With C = op(A) · op(B): d op(A) = dC · op(B)ᵀ and d op(B) = op(A)ᵀ · dC, each transposed once more if its
/// operand is stored transposed.
GPUC_RESIDUALS(MatmulOp, getLhs(), getRhs())
GPUC_VJP_BODY(MatmulOp) {
  Value a = op.getLhs(), b = op.getRhs();
  bool ta = op.getTransposeLhs(), tb = op.getTransposeRhs();
  Expr da = ta ? matmul(ct, b, tb, ct, true) : matmul(ct, ct, false, b, !tb);
  Expr db = op.hasSharedRhs() ? sharedRhsCotangent(op, ct)
            : tb              ? matmul(ct, ct, true, a, ta)
                              : matmul(ct, a, !ta, ct, false);
  return Cotangents{da, db};
}

} // namespace gpuc::ir
