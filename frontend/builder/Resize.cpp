//===- Resize.cpp - Pictures in other sizes -----------------------------------===//
//
// One dimension after another. Where each pixel repeats a whole number of times nothing is looked up: the
// gradient of a broadcast is a sum, which is cheaper than the scatter of a gather.
//
//===----------------------------------------------------------------------===//

#include "frontend/builder/Resize.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

namespace {

/// Each element of dimension `dim` `count` times, one after another.
Tensor repeat(const Tensor &x, int64_t dim, int64_t count) {
  Shape wide = x.shape(), shape = x.shape();
  wide.insert(wide.begin() + dim + 1, 1);
  Tensor split = reshape(x, wide);
  wide[dim + 1] = count;
  shape[dim] *= count;
  return reshape(broadcastTo(split, wide), shape);
}

/// The elements of dimension `dim` with these indices.
Tensor pick(const Tensor &x, int64_t dim, const std::vector<int32_t> &indices) {
  Graph &graph = *x.graph();
  auto type = graph.tensorType({static_cast<int64_t>(indices.size())}, DataType::i32);
  Tensor places = graph.emitTensor<ir::ConstantOp>(
      type, ir::canonicalConstant(DenseElementsAttr::get(type, ArrayRef(indices))));
  return graph.emitTensor<ir::GatherOp>(Graph::unwrap(x), Graph::unwrap(places), dim);
}

Tensor resizeNearest(const Tensor &x, int64_t dim, int64_t out) {
  const int64_t in = x.shape()[dim];
  if (out % in == 0)
    return repeat(x, dim, out / in);
  std::vector<int32_t> indices;
  for (int64_t i = 0; i < out; ++i)
    indices.push_back(static_cast<int32_t>(i * in / out));
  return pick(x, dim, indices);
}

/// Where element i of `out` lies between the elements of `in`.
double sourceOf(int64_t i, int64_t in, int64_t out, bool alignCorners) {
  const auto from = static_cast<double>(in), to = static_cast<double>(out), at = static_cast<double>(i);
  if (alignCorners)
    return out == 1 ? 0 : at * (from - 1) / (to - 1);
  return std::max(0.0, (at + 0.5) * from / to - 0.5);
}

Tensor resizeLinear(const Tensor &x, int64_t dim, int64_t out, bool alignCorners) {
  const int64_t in = x.shape()[dim];
  std::vector<int32_t> below, above;
  SmallVector<Attribute> fractions;
  Graph &graph = *x.graph();
  for (int64_t i = 0; i < out; ++i) {
    const double source = sourceOf(i, in, out, alignCorners);
    const int64_t low = std::min(static_cast<int64_t>(source), in - 1);
    below.push_back(static_cast<int32_t>(low));
    above.push_back(static_cast<int32_t>(std::min(low + 1, in - 1)));
    fractions.push_back(FloatAttr::get(graph.elementType(x.dtype()), source - static_cast<double>(low)));
  }
  auto type = graph.tensorType({out}, x.dtype());
  Tensor fraction =
      graph.emitTensor<ir::ConstantOp>(type, ir::canonicalConstant(DenseElementsAttr::get(type, fractions)));
  Shape beside(x.rank() - dim, 1); // [out, 1, …]
  beside.front() = out;
  Tensor weight = reshape(fraction, beside);
  return pick(x, dim, below) * (1 - weight) + pick(x, dim, above) * weight;
}

} // namespace

Tensor resize(const Tensor &x, const Shape &extents, Interpolation interpolation, bool alignCorners) {
  if (!x.graph() || !x.graph()->usable("resize", {&x}))
    return {};
  const bool isLinear = interpolation == Interpolation::linear;
  if (x.rank() < 3 || static_cast<int64_t>(extents.size()) != x.rank() - 2 ||
      llvm::any_of(extents, [](int64_t extent) { return extent < 1; }) ||
      llvm::is_contained(ArrayRef(x.shape()).drop_front(2), 0))
    return x.graph()->fail(
        llvm::formatv("resize of {0} to {1}: an extent of at least 1 for each dimension from "
                      "the third on",
                      toString(x.shape()), toString(extents)));
  if (!isFloat(x.dtype()) || (alignCorners && !isLinear))
    return x.graph()->fail(isFloat(x.dtype())
                               ? std::string("resize aligns corners with linear interpolation alone")
                               : std::string("resize takes floating point, got ") + nameOf(x.dtype()) +
                                     "; convert with to()");
  Tensor y = x;
  for (int64_t dim = 2; dim < x.rank() && y.valid(); ++dim)
    if (const int64_t out = extents[dim - 2]; out != x.shape()[dim])
      y = isLinear ? resizeLinear(y, dim, out, alignCorners) : resizeNearest(y, dim, out);
  return y;
}

//===----------------------------------------------------------------------===//
// The layer
//===----------------------------------------------------------------------===//

namespace {

/// "2", or "(2, 3)".
template <typename Number> std::string listed(const std::vector<Number> &numbers) {
  std::string text;
  for (Number number : numbers)
    text += (text.empty() ? "" : ", ") + detail::numberText(static_cast<double>(number));
  return numbers.size() == 1 ? text : "(" + text + ")";
}

} // namespace

std::string Upsample::describe() const {
  std::string text = options_.size.empty() ? "Upsample(scale_factor=" + listed(options_.scaleFactor)
                                           : "Upsample(size=" + listed(options_.size);
  text += options_.mode == Interpolation::linear ? ", linear" : ", nearest";
  return text + (options_.alignCorners ? ", align_corners)" : ")");
}

Tensor Upsample::forward(const Tensor &x) {
  Graph &graph = *x.graph();
  const auto given = static_cast<int64_t>(options_.size.size() + options_.scaleFactor.size());
  if (options_.size.empty() == options_.scaleFactor.empty() || x.rank() < 3 ||
      (given != 1 && given != x.rank() - 2))
    return graph.fail(
        llvm::formatv("{0} of {1}: give size or scale_factor, one number or one for each dimension from "
                      "the third on",
                      describe(), toString(x.shape())));
  Shape extents;
  for (int64_t i = 0; i < x.rank() - 2; ++i) {
    const int64_t at = given == 1 ? 0 : i, extent = x.shape()[i + 2];
    const double scaled = options_.size.empty() ? options_.scaleFactor[at] * static_cast<double>(extent)
                                                : static_cast<double>(options_.size[at]);
    // PyTorch would round down, and then find pixels by the factor and not by the extents.
    if (scaled != std::floor(scaled) || scaled < 1 || scaled > 1e9)
      return graph.fail(
          llvm::formatv("{0} makes {1} pixels of {2}; give a size that is a whole number up to 10^9",
                        describe(), detail::numberText(scaled), extent));
    extents.push_back(static_cast<int64_t>(scaled));
  }
  return resize(x, extents, options_.mode, options_.alignCorners);
}

} // namespace gpuc::nn
