//===- PaddingOps.cpp - Padding ---------------------------------------------===//

#include "frontend/onnx/ops/OpTable.h"

#include <algorithm>

namespace gpuc::onnx {
namespace {

/// `count` elements before (or behind) dimension `dim` as the mode says; none is cut.
Tensor border(const Tensor &x, int64_t dim, int64_t count, bool before, const std::string &mode) {
  const int64_t extent = x.extent(dim);
  if (mode == "edge") {
    Tensor edge = before ? slice(x, dim, 0, 1) : slice(x, dim, extent - 1, extent);
    Shape shape = x.shape();
    shape[dim] = count;
    return broadcastTo(edge, shape);
  }
  if (mode == "wrap" && count <= extent)
    return before ? slice(x, dim, extent - count, extent) : slice(x, dim, 0, count);
  if (mode == "reflect" && count < extent)
    return reverse(before ? slice(x, dim, 1, count + 1) : slice(x, dim, extent - 1 - count, extent - 1),
                   {dim});
  return x.emitter()->fail("padding by " + std::to_string(count) + " in mode " + mode + " of extent " +
                           std::to_string(extent));
}

/// A number of its own around it, which need not be one that an attribute holds exactly.
Tensor padWith(const Tensor &x, const Shape &low, const Shape &high, const Tensor &value) {
  Tensor inside = pad(cast(like(x, 1), DataType::i1), low, high, 0);
  Tensor padded = pad(x, low, high, 0);
  return select(inside, padded, value);
}

void lowerPad(NodeScope &node) {
  Tensor x = node.input(0);
  std::optional<Shape> pads = node.requireIntegers(1, "pads");
  Shape axes = dimsFrom(0, x.rank());
  if (node.has(3))
    if (std::optional<Shape> given = node.requireIntegers(3, "axes"))
      axes = *given;
  std::string mode = node.text("mode", "constant");
  if (node.failed())
    return;
  if (pads->size() != 2 * axes.size())
    return void(node.fail("pads has " + std::to_string(pads->size()) + " entries for " +
                          std::to_string(axes.size()) + " axes"));
  Shape low(x.rank(), 0), high(x.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t dim = dimension(x, axes[i]);
    if (dim < 0)
      return;
    low[dim] = (*pads)[i];
    high[dim] = (*pads)[i + axes.size()];
  }
  // Negative padding cuts; what is left is padded.
  for (int64_t dim = 0; dim < x.rank(); ++dim) {
    int64_t first = std::max<int64_t>(-low[dim], 0), last = std::max<int64_t>(-high[dim], 0);
    if (first + last > 0) {
      if (first + last > x.extent(dim))
        return void(node.fail("padding cuts more than there is of shape " + toString(x.shape())));
      x = slice(x, dim, first, x.extent(dim) - last);
    }
    low[dim] = std::max<int64_t>(low[dim], 0), high[dim] = std::max<int64_t>(high[dim], 0);
  }
  if (mode == "constant") {
    HostTensorPtr value = node.has(2) ? node.known(2) : nullptr;
    if (node.has(2) && !value)
      return node.output(padWith(x, low, high, reshape(node.input(2), {})));
    return node.output(pad(x, low, high, value && !numbersOf(*value).empty() ? numbersOf(*value)[0] : 0));
  }
  for (int64_t dim = 0; dim < x.rank() && x; ++dim) {
    std::vector<Tensor> parts;
    if (low[dim] > 0)
      parts.push_back(border(x, dim, low[dim], /*before=*/true, mode));
    parts.push_back(x);
    if (high[dim] > 0)
      parts.push_back(border(x, dim, high[dim], /*before=*/false, mode));
    if (parts.size() > 1)
      x = concat(parts, dim);
  }
  node.output(x);
}

/// Cut or padded with zeros about the centre, to the given extents.
void lowerCenterCropPad(NodeScope &node) {
  Tensor x = node.input(0);
  std::optional<Shape> asked = node.requireIntegers(1, "shape");
  const Shape axes = node.integers("axes", dimsFrom(0, x.rank()));
  if (node.failed())
    return;
  if (asked->size() != axes.size())
    return void(node.fail("shape and axes are not equally many"));
  for (size_t i = 0; i < axes.size() && x; ++i) {
    int64_t dim = dimension(x, axes[i]);
    if (dim < 0)
      return;
    int64_t extent = x.extent(dim), target = (*asked)[i];
    Shape low(x.rank(), 0), high(x.rank(), 0);
    if (target < extent) {
      int64_t start = (extent - target) / 2;
      x = slice(x, dim, start, start + std::max<int64_t>(target, 0));
    } else {
      low[dim] = (target - extent) / 2;
      high[dim] = target - extent - low[dim];
      x = pad(x, low, high, 0);
    }
  }
  node.output(x);
}

} // namespace

void addPadding(OpTable &table) {
  table["Pad"] = {lowerPad, {"mode"}};
  table["CenterCropPad"] = {lowerCenterCropPad, {"axes"}};
}

} // namespace gpuc::onnx
