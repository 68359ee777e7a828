//===- MatrixUpdates.cpp - Optimizers that see a weight as a matrix ---------===//
//
// f16 and bf16 are computed as f32: their sums over a matrix would not fit. What depends on step and learning
// rate alone is computed in f64 and rounded once.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/definitions/UpdateHelpers.h"

#include <cmath>

using namespace mlir;

namespace gpuc::ir {

/// The sum of all squares, a scalar.
static Expr squaredNorm(Expr x) { return x.rank() == 0 ? x * x : sumAll(x * x); }

/// The root of the mean of all squares, a scalar.
static Expr rootMeanSquare(Expr x) {
  return sqrt(squaredNorm(x) / static_cast<double>(elementCount(x.type())));
}

//===----------------------------------------------------------------------===//
// Adafactor
//===----------------------------------------------------------------------===//

namespace {

/// Second moments of a gradient: what is kept of them, and the estimate that follows for each element.
struct SecondMoments {
  SmallVector<Expr> kept;
  Expr estimate;
};

} // namespace

/// old + rate · (now - old)
static Expr moved(Expr old, Expr now, Expr rate) { return old + spreadLike(old, rate) * (now - old); }

/// A mean along the last dimension but `fromLast`, which keeps the extent 1.
static Expr meanAlong(Expr x, int64_t fromLast) {
  int64_t dim = x.rank() - 1 - fromLast, extent = x.shape()[dim];
  Shape shape(x.shape());
  shape[dim] = 1;
  return reshape(sum(x, dim) / static_cast<double>(extent), withShape(x, shape));
}

/// x, with an extent of 1 where `shape` has another, repeated to it.
static Expr repeated(Expr x, ArrayRef<int64_t> shape) {
  Shape dims, extents;
  for (auto [dim, extent] : llvm::enumerate(x.shape()))
    if (extent == shape[dim]) {
      dims.push_back(dim);
      extents.push_back(extent);
    }
  return broadcast(reshape(x, withShape(x, extents)), dims, shape);
}

static SecondMoments factoredMoments(Expr gradient, Expr row, Expr column, Expr rate, double eps1) {
  Expr square = gradient * gradient;
  Expr rows = moved(row, meanAlong(square, 0), rate), columns = moved(column, meanAlong(square, 1), rate);
  Expr mean = max(meanAlong(rows, 1), eps1);
  Expr share = rows / repeated(mean, rows.shape());
  return {{rows, columns}, repeated(share, gradient.shape()) * repeated(columns, gradient.shape())};
}

SmallVector<Value> AdafactorUpdateOp::decompose(OpBuilder &builder) {
  Expr place(builder, getLoc(), getWeight());
  auto wide = [&](Value value) { return widen(place.at(value)); };
  Expr weight = wide(getWeight()), gradient = wide(getGradient());
  Expr step = asF64(place.at(getStep())), lr = asF64(place.at(getLr()));
  double eps1 = getEps1().convertToDouble();

  Expr rate = pow(step, getBeta2Decay().convertToDouble());
  SecondMoments moments;
  if (getVariances().size() == 2) {
    moments = factoredMoments(gradient, wide(getVariances()[0]), wide(getVariances()[1]), rate, eps1);
  } else {
    Expr variance = moved(wide(getVariances()[0]), gradient * gradient, rate);
    moments = {{variance}, variance};
  }

  Expr direction = gradient / max(sqrt(moments.estimate), eps1);
  Expr size = max(asF64(rootMeanSquare(weight)), getEps2().convertToDouble());
  Expr excess = max(asF64(rootMeanSquare(direction)) / getD().convertToDouble(), 1);
  Expr stepSize = size * min(lr, 1 / sqrt(step)) / excess;
  Expr updated = decayed(weight, lr, getWeightDecay()) - spreadLike(weight, stepSize) * direction;

  SmallVector<Value> results = {cast(updated, place.elementType())};
  for (Expr kept : moments.kept)
    results.push_back(cast(withoutDenormals(kept), place.elementType()));
  return results;
}

//===----------------------------------------------------------------------===//
// Muon
//===----------------------------------------------------------------------===//

/// The product of x with y; a flag for an operand that is transposed first.
static Expr product(Expr x, Expr y, bool transposeX = false, bool transposeY = false) {
  return x.make<MatmulOp>(x.value(), y.value(), transposeX, transposeY);
}

/// A quintic that moves singular values in (0, 1] towards 1, `steps` times [Jordan et al. 2024]. The Gram
/// matrix is that of the rows or of the columns, whichever are fewer.
static Expr orthogonalized(Expr x, int64_t steps) {
  bool isTall = x.shape()[0] > x.shape()[1];
  x = x / broadcastScalar(sqrt(squaredNorm(x)) + 1e-7, x.shape());
  for (int64_t i = 0; i < steps; ++i) {
    Expr gram = isTall ? product(x, x, /*transposeX=*/true) : product(x, x, false, /*transposeY=*/true);
    Expr factor = -4.7750 * gram + 2.0315 * product(gram, gram);
    x = 3.4445 * x + (isTall ? product(x, factor) : product(factor, x));
  }
  return x;
}

SmallVector<Value> MuonUpdateOp::decompose(OpBuilder &builder) {
  Expr place(builder, getLoc(), getWeight());
  Expr weight = widen(place), gradient = widen(place.at(getGradient()));
  double momentum = getMomentum().convertToDouble();
  Expr buffer = withoutDenormals(momentum * widen(place.at(getMomentumBuffer())) + (1 - momentum) * gradient);
  Expr direction = getNesterov() ? (1 - momentum) * gradient + momentum * buffer : buffer;

  int64_t rows = weight.shape().front(), columns = elementCount(weight.type()) / rows;
  Expr matrix = reshape(direction, withShape(direction, {rows, columns}));
  Expr orthogonal = reshape(orthogonalized(matrix, getNsSteps()), weight.type());
  Expr lr = asF64(place.at(getLr()));
  double scale = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
  Expr updated = decayed(weight, lr, getWeightDecay()) - spreadLike(weight, lr * scale) * orthogonal;
  return {cast(updated, place.elementType()), cast(buffer, place.elementType())};
}

} // namespace gpuc::ir
