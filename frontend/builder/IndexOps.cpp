//===- IndexOps.cpp - Parts of tensors, and tensors of parts ----------------===//

#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

Tensor slice(const Tensor &x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  std::optional<int64_t> along = Graph::dimension("slice", x, dim);
  if (!along)
    return {};
  const Shape shape = x.shape();
  const int64_t extent = shape[*along];
  if (extent == kBatch)
    return x.graph()->fail("slice along the batch of " + toString(shape) +
                           ": samples do not know their neighbours");
  const int64_t first = start < 0 ? start + extent : start, last = end < 0 ? end + extent : end;
  if (first < 0 || first >= last || last > extent || step < 1)
    return x.graph()->fail(llvm::formatv("slice {0}:{1}:{2} along dimension {3} of {4} takes no element",
                                         start, end, step, *along, toString(shape)));
  SmallVector<int64_t> starts(x.rank(), 0), limits(x.rank(), -1), strides(x.rank(), 1);
  starts[*along] = first;
  limits[*along] = last;
  strides[*along] = step;
  return x.graph()->emitTensor<ir::SliceOp>(Graph::unwrap(x), starts, limits, strides);
}

Tensor select(const Tensor &x, int64_t dim, int64_t index) {
  std::optional<int64_t> along = Graph::dimension("select", x, dim);
  if (!along)
    return {};
  Shape shape = x.shape();
  const int64_t first = index < 0 ? index + shape[*along] : index;
  if (shape[*along] != kBatch && (first < 0 || first >= shape[*along]))
    return x.graph()->fail(
        llvm::formatv("select of {0} along dimension {1} of {2}", index, *along, toString(shape)));
  Tensor one = slice(x, *along, first, first + 1);
  shape.erase(shape.begin() + *along);
  return reshape(one, shape);
}

Tensor concat(const std::vector<Tensor> &parts, int64_t dim) {
  std::optional<int64_t> along =
      parts.empty() ? std::nullopt : Graph::dimension("concat", parts.front(), dim);
  if (!along)
    return {};
  const Tensor &first = parts.front();
  Graph &graph = *first.graph();
  SmallVector<Value> values;
  for (const Tensor &part : parts) {
    if (!graph.usable("concat", {&part}))
      return {};
    Shape expected = first.shape();
    if (part.rank() == first.rank())
      expected[*along] = part.shape()[*along];
    if (part.dtype() != first.dtype() || part.shape() != expected || expected[*along] == kBatch)
      return graph.fail(
          llvm::formatv("concat of {0} {1} and {2} {3}: they may differ in dimension {4} alone, "
                        "which is not the batch",
                        toString(first.shape()), nameOf(first.dtype()), toString(part.shape()),
                        nameOf(part.dtype()), *along));
    values.push_back(Graph::unwrap(part));
  }
  return graph.emitTensor<ir::ConcatOp>(values, *along);
}

Tensor gather(const Tensor &x, const Tensor &indices, int64_t dim) {
  std::optional<int64_t> along = Graph::dimension("gather", x, dim);
  if (!along || !x.graph()->usable("gather", {&indices}))
    return {};
  if (indices.dtype() != DataType::i32 && indices.dtype() != DataType::i64)
    return x.graph()->fail(
        llvm::formatv("gather takes i32 or i64 indices, got {0}", nameOf(indices.dtype())));
  const Shape from = x.shape(), places = indices.shape();
  if (from[*along] == kBatch)
    return x.graph()->fail("gather along the batch of " + toString(from) +
                           ": samples do not know their neighbours");
  if (*along > 0 && !places.empty() && places[0] == kBatch)
    return x.graph()->fail(
        llvm::formatv("gather along dimension {0} of {1} by {2}: the batch stays first, so "
                      "indices with a batch take dimension 0",
                      *along, toString(from), toString(places)));
  return x.graph()->emitTensor<ir::GatherOp>(Graph::unwrap(x), Graph::unwrap(indices), *along);
}

Tensor constant(const Tensor &user, const Shape &shape, const std::vector<double> &numbers) {
  Graph *graph = user.graph();
  if (!graph || !graph->usable("constant", {&user}))
    return {};
  RankedTensorType type = graph->tensorType(shape, graph->floats);
  if (llvm::any_of(shape, [](int64_t extent) { return extent < 0; }) ||
      type.getNumElements() != static_cast<int64_t>(numbers.size()))
    return graph->fail(llvm::formatv("constant of {0} with {1} numbers", toString(shape), numbers.size()));
  SmallVector<Attribute> elements;
  for (double number : numbers)
    elements.push_back(FloatAttr::get(type.getElementType(), number));
  return graph->emitTensor<ir::ConstantOp>(type, DenseElementsAttr::get(type, elements));
}

} // namespace gpuc::nn
