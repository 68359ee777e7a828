//===- ShapeOps.cpp - Shapes, contractions, reductions ----------------------===//

#include "frontend/ElementType.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

Shape Tensor::shape() const {
  return valid() ? Shape(cast<RankedTensorType>(Graph::unwrap(*this).getType()).getShape()) : Shape();
}

DataType Tensor::dtype() const { return valid() ? dataTypeOf(Graph::unwrap(*this)) : DataType::f32; }

namespace {

/// The product of all extents but the batch.
int64_t staticCount(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent == kBatch ? 1 : extent;
  return count;
}

bool hasBatch(const Shape &shape) { return !shape.empty() && shape[0] == kBatch; }

/// Replaces an extent of -1 by what is left over; false if nothing fits.
bool inferExtent(const Shape &from, Shape &to) {
  auto open = llvm::find(to, -1);
  if (open == to.end())
    return hasBatch(from) == hasBatch(to) && staticCount(from) == staticCount(to);
  *open = 1;
  // The batch has no number: it is the open extent only if it is first and nothing else is left over.
  if (hasBatch(from) && !hasBatch(to)) {
    *open = kBatch;
    return open == to.begin() && staticCount(from) == staticCount(to);
  }
  int64_t rest = staticCount(to);
  if (hasBatch(from) != hasBatch(to) || rest == 0 || staticCount(from) % rest != 0)
    return false;
  *open = staticCount(from) / rest;
  return true;
}

} // namespace

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

Tensor reshape(const Tensor &x, Shape shape) {
  if (!x.graph() || !x.graph()->usable("reshape", {&x}))
    return {};
  const std::string asked = toString(shape);
  bool sound = llvm::count(shape, -1) <= 1;
  for (auto [i, extent] : llvm::enumerate(shape))
    sound &= extent >= 0 || extent == -1 || (extent == kBatch && i == 0);
  if (!sound)
    return x.graph()->fail("reshape to " + asked +
                           ": extents are at least 0, but for one -1 and a leading kBatch");
  if (!inferExtent(x.shape(), shape))
    return x.graph()->fail(
        llvm::formatv("reshape of {0} to {1}: the number of elements differs", toString(x.shape()), asked));
  if (shape == x.shape())
    return x;
  return x.graph()->emitTensor<ir::ReshapeOp>(x.graph()->tensorType(shape, x.dtype()), Graph::unwrap(x));
}

Tensor flatten(const Tensor &x, int64_t first) {
  std::optional<int64_t> from = Graph::dimension("flatten", x, first);
  if (!from)
    return {};
  Shape shape = x.shape();
  if (*from == 0 && hasBatch(shape) && x.rank() > 1)
    return x.graph()->fail("flatten of " + toString(shape) +
                           " from dimension 0 would merge the batch; begin at 1");
  Shape flat(shape.begin(), shape.begin() + *from);
  flat.push_back(*from == 0 && hasBatch(shape) ? kBatch
                                               : staticCount(Shape(shape.begin() + *from, shape.end())));
  return reshape(x, flat);
}

Tensor transpose(const Tensor &x, int64_t first, int64_t second) {
  std::optional<int64_t> a = Graph::dimension("transpose", x, first),
                         b = Graph::dimension("transpose", x, second);
  if (!a || !b)
    return {};
  if (*a != *b && hasBatch(x.shape()) && (*a == 0 || *b == 0))
    return x.graph()->fail("transpose of " + toString(x.shape()) +
                           " would move the batch, which stays first");
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  std::swap(permutation[*a], permutation[*b]);
  return x.graph()->emitTensor<ir::TransposeOp>(Graph::unwrap(x), permutation);
}

Tensor broadcastTo(const Tensor &x, const Shape &shape) {
  if (!x.graph() || !x.graph()->usable("broadcastTo", {&x}))
    return {};
  const Shape from = x.shape();
  if (from == shape)
    return x;
  std::optional<Repetition> repetition = repetitionOf(from, shape);
  if (!repetition)
    return x.graph()->fail(llvm::formatv("broadcast of {0} to {1}: an extent is neither 1 nor equal",
                                         toString(from), toString(shape)));
  Tensor dense = reshape(x, repetition->kept);
  if (!dense.valid())
    return {};
  return x.graph()->emitTensor<ir::BroadcastOp>(x.graph()->tensorType(shape, x.dtype()), Graph::unwrap(dense),
                                                repetition->dims);
}

//===----------------------------------------------------------------------===//
// Contractions and reductions
//===----------------------------------------------------------------------===//

Tensor matmul(const Tensor &lhs, const Tensor &rhs, bool transposeRhs) {
  Graph *graph = Graph::of("matmul", {&lhs, &rhs});
  if (!graph)
    return {};
  if (lhs.dtype() != rhs.dtype() || !isFloat(lhs.dtype()))
    return graph->fail(llvm::formatv("matmul takes operands of one floating-point type, got {0} and {1}",
                                     nameOf(lhs.dtype()), nameOf(rhs.dtype())));
  const Shape a = lhs.shape(), b = rhs.shape();
  const size_t rank = a.size();
  auto misfit = [&](const char *why) {
    return graph->fail(llvm::formatv("matmul of {0} and {1}{2}: {3}", toString(a), toString(b),
                                     transposeRhs ? " transposed" : "", why));
  };
  const bool shared = b.size() == 2 && rank > 2;
  if (rank < 2 || (b.size() != rank && !shared))
    return misfit("both have the same number of dimensions, at least 2, or the second has 2");
  if (!shared && !std::equal(a.begin(), a.end() - 2, b.begin()))
    return misfit("the leading dimensions differ");
  if (a.back() != b.end()[transposeRhs ? -1 : -2])
    return misfit("the contracted dimensions differ");
  Shape shape = a;
  shape.back() = b.end()[transposeRhs ? -2 : -1];
  return graph->emitTensor<ir::MatmulOp>(graph->tensorType(shape, lhs.dtype()), Graph::unwrap(lhs),
                                         Graph::unwrap(rhs), /*transpose_lhs=*/false, transposeRhs);
}

namespace {

template <typename OpType> Tensor reduce(const char *name, const Tensor &x, const Shape &dims) {
  if (!x.graph() || !x.graph()->usable(name, {&x}))
    return {};
  SmallVector<int64_t> sorted;
  for (int64_t dim : dims) {
    std::optional<int64_t> index = Graph::dimension(name, x, dim);
    if (!index)
      return {};
    if (llvm::is_contained(sorted, *index))
      return x.graph()->fail(llvm::formatv("{0} twice along dimension {1} of {2}, which has {3}", name, dim,
                                           toString(x.shape()), x.rank()));
    sorted.push_back(*index);
  }
  llvm::sort(sorted);
  if (!x.graph()->isFloating(name, x))
    return {};
  Shape shape;
  for (auto [i, extent] : llvm::enumerate(x.shape()))
    if (!llvm::is_contained(sorted, i))
      shape.push_back(extent);
  return x.graph()->emitTensor<OpType>(x.graph()->tensorType(shape, x.dtype()), Graph::unwrap(x), sorted);
}

template <typename OpType> Tensor along(const char *name, const Tensor &x, int64_t dim) {
  std::optional<int64_t> index = Graph::dimension(name, x, dim);
  if (!index || !x.graph()->isFloating(name, x))
    return {};
  return x.graph()->emitTensor<OpType>(Graph::unwrap(x), x.graph()->builder.getI64IntegerAttr(*index));
}

} // namespace

Tensor sum(const Tensor &x, Shape dims) { return reduce<ir::SumOp>("sum", x, dims); }
Tensor mean(const Tensor &x, Shape dims) { return reduce<ir::MeanOp>("mean", x, dims); }
Tensor softmax(const Tensor &x, int64_t dim) { return along<ir::SoftmaxOp>("softmax", x, dim); }
Tensor logSoftmax(const Tensor &x, int64_t dim) { return along<ir::LogSoftmaxOp>("logSoftmax", x, dim); }

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// The dimension to put in order, or none after an error.
static std::optional<int64_t> orderedDimension(const char *name, const Tensor &x, int64_t dim) {
  std::optional<int64_t> index = Graph::dimension(name, x, dim);
  if (!index)
    return std::nullopt;
  if (x.shape()[*index] == kBatch)
    x.graph()->fail(llvm::formatv("{0} along the batch of {1}: samples do not know their neighbours", name,
                                  toString(x.shape())));
  else if (x.dtype() == DataType::i1)
    x.graph()->fail(llvm::formatv("{0} takes numbers, got i1", name));
  else
    return index;
  return std::nullopt;
}

Sorted sort(const Tensor &x, int64_t dim, bool descending) {
  std::optional<int64_t> index = orderedDimension("sort", x, dim);
  if (!index)
    return {};
  auto op = x.graph()->emit<ir::SortOp>(Graph::unwrap(x), *index, descending);
  return {x.graph()->wrap(op.getValues()), x.graph()->wrap(op.getIndices())};
}

Sorted topK(const Tensor &x, int64_t k, int64_t dim, bool largest) {
  std::optional<int64_t> index = orderedDimension("topK", x, dim);
  if (!index)
    return {};
  if (k < 1 || k > x.shape()[*index])
    return x.graph()->fail(llvm::formatv("topK of {0} with k = {1}: dimension {2} has {3}",
                                         toString(x.shape()), k, dim, x.shape()[*index]));
  auto op = x.graph()->emit<ir::TopKOp>(Graph::unwrap(x), k, *index, !largest);
  return {x.graph()->wrap(op.getValues()), x.graph()->wrap(op.getIndices())};
}

} // namespace gpuc::nn
