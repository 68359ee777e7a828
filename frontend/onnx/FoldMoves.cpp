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
  Shape out(std::max(lhs.size(), rhs.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t a = i < lhs.size() ? lhs[lhs.size() - 1 - i] : 1,
            b = i < rhs.size() ? rhs[rhs.size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1)
      return std::nullopt;
    out[out.size() - 1 - i] = a == 1 ? b : a;
  }
  return countOf(out) <= kMostFoldedElements ? std::optional(out) : std::nullopt;
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
  Shape starts = integersOf(*node.known(1)), ends = integersOf(*node.known(2)), shape = x->spec.shape;
  Shape axes(starts.size()), steps(starts.size(), 1), strides = stridesOf(shape);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has(3))
    axes = integersOf(*node.known(3));
  if (node.has(4))
    steps = integersOf(*node.known(4));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return nullptr;
  int64_t origin = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t dim = wrapDim(axes[i], shape.size()), step = steps[i];
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || step == 0)
      return nullptr;
    auto bound = [extent = shape[dim]](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? (at < -extent ? 0 : at + extent) : at, 0, extent);
    };
    if (step < 0) { // From `start` down to the one behind `end`.
      const int64_t extent = shape[dim];
      auto last = [extent](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? (at < -extent ? -1 : at + extent) : at, -1, extent - 1);
      };
      const int64_t start = last(starts[i]), end = std::min(last(ends[i]), start);
      step = std::min(step == INT64_MIN ? INT64_MAX : -step, std::max<int64_t>(extent, 1));
      origin += std::max<int64_t>(start, 0) * strides[dim];
      strides[dim] *= -step;
      shape[dim] = (start - end + step - 1) / step;
      continue;
    }
    int64_t start = bound(starts[i]), end = std::max(bound(ends[i]), start);
    origin += start * strides[dim];
    step = std::min(step, std::max<int64_t>(shape[dim], 1));
    strides[dim] *= step;
    shape[dim] = (end - start + step - 1) / step;
  }
  return pick(*x, shape, walk(shape, strides, origin));
}

HostTensorPtr foldTranspose(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape from = x->spec.shape, permutation(from.size()), strides = stridesOf(from), shape, walked;
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  permutation = node.integers("perm", permutation);
  Shape sorted = permutation, all(from.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
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

/// Reshape, Squeeze, Unsqueeze, Flatten: the same bytes under another shape.
HostTensorPtr foldView(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape shape = x->spec.shape;
  if (node.node.op == "Reshape") {
    Shape asked = integersOf(*node.known(1));
    int64_t rest = 1, open = -1;
    for (size_t i = 0; i < asked.size(); ++i) {
      if (asked[i] == 0 && !node.integer("allowzero", 0))
        asked[i] = i < shape.size() ? shape[i] : -2;
      if (asked[i] == -1 && open < 0)
        open = static_cast<int64_t>(i);
      else if (asked[i] < 0 || __builtin_mul_overflow(rest, asked[i], &rest))
        return nullptr;
    }
    if (open >= 0 && rest > 0)
      asked[open] = countOf(shape) / rest;
    shape = asked;
  } else {
    Shape axes;
    if (node.inputCount() > 1)
      axes = integersOf(*node.known(1));
    else if (node.node.op == "Unsqueeze")
      return nullptr;
    const size_t rank = shape.size() + (node.node.op == "Unsqueeze" ? axes.size() : 0);
    for (int64_t &axis : axes)
      if ((axis = wrapDim(axis, rank)) < 0 || axis >= static_cast<int64_t>(rank))
        return nullptr;
    std::sort(axes.begin(), axes.end());
    if (node.node.op == "Unsqueeze") {
      for (int64_t axis : axes) {
        if (axis > static_cast<int64_t>(shape.size()))
          return nullptr;
        shape.insert(shape.begin() + axis, 1);
      }
    } else {
      Shape kept;
      for (size_t i = 0; i < shape.size(); ++i) {
        bool named = std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
        if (named && shape[i] != 1)
          return nullptr;
        if (!(named || (node.inputCount() < 2 && shape[i] == 1)))
          kept.push_back(shape[i]);
      }
      shape = kept;
    }
  }
  return countOf(shape) == x->spec.elementCount() ? withShape(x, shape) : nullptr;
}

} // namespace gpuc::onnx
