//===- Folding.h - What the parts of the folder share -----------------------===//
#pragma once

#include "frontend/onnx/NodeScope.h"

namespace gpuc::onnx {

/// Larger tensors are left to the machine.
inline constexpr int64_t kMostFoldedElements = 1 << 16;

/// The product of the extents; the largest i64 if one is negative or the product overflows.
int64_t countOf(const Shape &shape);
/// In elements, of a row-major layout.
Shape stridesOf(const Shape &shape);
/// The shape that both broadcast to; none if they do not, which the lowering then reports.
std::optional<Shape> common(const Shape &lhs, const Shape &rhs);
HostTensorPtr broadcast(const HostTensorPtr &tensor, const Shape &shape);

/// The shape that Reshape, Squeeze or Unsqueeze gives its operand; none after an error.
std::optional<Shape> viewShape(NodeScope &node);

/// One dimension of Slice.
struct DimSlice {
  int64_t dim, start, end, step;
};
/// What Slice asks for; none after an error.
std::optional<std::vector<DimSlice>> readSlices(NodeScope &node);
/// The same of a dimension of this extent: nothing is counted from the end or lies beyond it, and a step
/// leads no further than the extent. Backwards, an end of -1 lies before the first element.
DimSlice within(DimSlice slice, int64_t extent);

// Ops that move elements. Null: left to the machine, which reports what is wrong.
HostTensorPtr foldGather(NodeScope &node);
HostTensorPtr foldConcat(NodeScope &node);
HostTensorPtr foldSlice(NodeScope &node);
HostTensorPtr foldTranspose(NodeScope &node);
HostTensorPtr foldExpand(NodeScope &node);
HostTensorPtr foldView(NodeScope &node);

} // namespace gpuc::onnx
