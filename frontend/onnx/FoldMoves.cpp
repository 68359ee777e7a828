//===- FoldMoves.cpp - Movement of what is known while importing ------------===//

#include "frontend/onnx/Folding.h"

#include <algorithm>
#include <numeric>

namespace gpuc::onnx {
namespace {

/// For each element of `shape` in row-major order: origin + Σ index_d · strides[d].
Shape walk(const Shape &shape, const Shape &strides, int64_t origin = 0) {
  Shape sources(countOf(shape));
  Shape index(shape.size(), 0);
  for (int64_t &source : sources) {
    source = origin;
    for (size_t d = shape.size(); d-- > 0;) {
      origin += strides[d];
      if (++index[d] < shape[d])
        break;
      origin -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return sources;
}

int64_t wrapDim(int64_t dim, size_t rank) { return dim < 0 ? dim + static_cast<int64_t>(rank) : dim; }

} // namespace

int64_t countOf(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      return INT64_MAX;
  return count;
}

Shape stridesOf(const Shape &shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::optional<Shape> common(const Shape &lhs, const Shape &rhs) {
  std::optional<Shape> shape = gpuc::broadcastShapes(lhs, rhs);
  return shape && countOf(*shape) <= kMostFoldedElements ? shape : std::nullopt;
}

HostTensorPtr broadcast(const HostTensorPtr &tensor, const Shape &shape) {
  if (tensor->spec.shape == shape)
    return tensor;
  const Shape &from = tensor->spec.shape;
  Shape own = stridesOf(from), strides(shape.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    strides[shape.size() - from.size() + i] = from[i] == 1 ? 0 : own[i];
  return pick(*tensor, shape, walk(shape, strides));
}

HostTensorPtr foldGather(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape indices = integersOf(*node.known(1)), from = x->spec.shape;
  int64_t dim = wrapDim(node.integer("axis", 0), from.size());
  if (dim < 0 || dim >= static_cast<int64_t>(from.size()))
    return nullptr;
  Shape outer(from.begin(), from.begin() + dim), inner(from.begin() + dim + 1, from.end()), shape = outer;
  Shape chosen = node.shapeOf(1);
  shape.insert(shape.end(), chosen.begin(), chosen.end());
  shape.insert(shape.end(), inner.begin(), inner.end());
  if (countOf(shape) > kMostFoldedElements)
    return nullptr;
  Shape sources;
  for (int64_t o = 0; o < countOf(outer); ++o)
    for (int64_t index : indices) {
      index = wrapDim(index, from[dim]);
      if (index < 0 || index >= from[dim])
        return nullptr;
      for (int64_t i = 0; i < countOf(inner); ++i)
        sources.push_back((o * from[dim] + index) * countOf(inner) + i);
    }
  return pick(*x, shape, sources);
}

HostTensorPtr foldConcat(NodeScope &node) {
  HostTensorPtr first = node.known(0);
  int64_t dim = wrapDim(node.integer("axis", 0), first->spec.shape.size());
  // Shapes are lists; what has more dimensions is left to the machine, but for lists of rows.
  if (dim != 0 || first->spec.shape.empty())
    return nullptr;
  auto made = std::make_shared<HostTensor>(*first);
  made->symbolic = false;
  made->spec.shape[0] = 0;
  std::string bytes;
  for (size_t i = 0; i < node.inputCount(); ++i) {
    HostTensorPtr part = node.known(i);
    Shape rest = part->spec.shape, expected = made->spec.shape;
    if (part->spec.type != first->spec.type || rest.size() != expected.size() ||
        !std::equal(rest.begin() + 1, rest.end(), expected.begin() + 1))
      return nullptr;
    made->spec.shape[0] += rest[0];
    made->symbolic |= part->symbolic;
    bytes += *part->bytes;
  }
  made->bytes = std::make_shared<const std::string>(std::move(bytes));
  return made;
}

HostTensorPtr foldSlice(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  std::optional<std::vector<DimSlice>> slices = readSlices(node);
  if (!slices)
    return nullptr;
  Shape shape = x->spec.shape, strides = stridesOf(shape);
  int64_t origin = 0;
  for (const DimSlice &given : *slices) {
    const int64_t dim = wrapDim(given.dim, shape.size());
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || given.step == 0)
      return nullptr;
    const DimSlice slice = within(given, shape[dim]);
    origin += std::max<int64_t>(slice.start, 0) * strides[dim];
    strides[dim] *= slice.step;
    const int64_t step = std::abs(slice.step);
    shape[dim] = (std::abs(slice.end - slice.start) + step - 1) / step;
  }
  return pick(*x, shape, walk(shape, strides, origin));
}

HostTensorPtr foldTranspose(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape from = x->spec.shape, permutation(from.size()), strides = stridesOf(from), shape, walked;
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  permutation = node.integers("perm", permutation);
  Shape sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != dimsFrom(0, static_cast<int64_t>(from.size())))
    return nullptr;
  for (int64_t dim : permutation) {
    shape.push_back(from[dim]);
    walked.push_back(strides[dim]);
  }
  return pick(*x, shape, walk(shape, walked));
}

HostTensorPtr foldExpand(NodeScope &node) {
  if (node.known(1)->symbolic)
    return nullptr;
  std::optional<Shape> shape = common(node.shapeOf(0), integersOf(*node.known(1)));
  return shape ? broadcast(node.known(0), *shape) : nullptr;
}

/// Reshape, Squeeze, Unsqueeze: the same bytes under another shape.
HostTensorPtr foldView(NodeScope &node) {
  std::optional<Shape> shape = viewShape(node);
  HostTensorPtr x = node.known(0);
  return shape && countOf(*shape) == x->spec.elementCount() ? withShape(x, *shape) : nullptr;
}

} // namespace gpuc::onnx
