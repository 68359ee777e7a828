//===- WindowOps.cpp - Convolution and pooling ------------------------------===//
//
// Images, [N, C, H, W] of floating point, have ops of their own in gpuc. Pooling in one or three dimensions,
// dilated means and the like are put together from shifted slices: element k of every window, for each k.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/ops/OpTable.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace gpuc::onnx {
namespace {

/// Where windows lie, one entry for each spatial dimension.
struct Windows {
  Shape kernel, strides, dilations, low, high;
  Shape count; ///< How many there are.

  size_t rank() const { return kernel.size(); }
  int64_t reach(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

/// auto_pad and pads, which the extents resolve.
bool placeWindows(NodeScope &node, const Shape &spatial, Windows &w) {
  std::string automatic = node.text("auto_pad", "NOTSET");
  Shape pads = node.integers("pads", Shape(2 * spatial.size(), 0));
  const bool ceiling = node.integer("ceil_mode", 0);
  const size_t rank = spatial.size();
  auto sound = [&](const Shape &list, int64_t least) {
    return list.size() == rank &&
           std::all_of(list.begin(), list.end(), [&](int64_t n) { return n >= least && n < INT32_MAX; });
  };
  if (!sound(w.kernel, 1) || !sound(w.strides, 1) || !sound(w.dilations, 1) || pads.size() != 2 * rank ||
      std::any_of(pads.begin(), pads.end(), [](int64_t n) { return n < 0 || n >= INT32_MAX; }))
    return node.fail("kernel_shape, strides, dilations or pads do not suit " + std::to_string(rank) +
                     " spatial dimensions");
  w.low.assign(pads.begin(), pads.begin() + rank);
  w.high.assign(pads.begin() + rank, pads.end());
  w.count.resize(rank);
  for (size_t d = 0; d < rank; ++d) {
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      w.count[d] = (spatial[d] + w.strides[d] - 1) / w.strides[d];
      int64_t total = std::max<int64_t>((w.count[d] - 1) * w.strides[d] + w.reach(d) - spatial[d], 0);
      w.low[d] = automatic == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
      w.high[d] = total - w.low[d];
      continue;
    }
    if (automatic == "VALID")
      w.low[d] = w.high[d] = 0;
    else if (automatic != "NOTSET") {
      return node.fail("attribute 'auto_pad' = '" + automatic + "'");
    }
    int64_t room = spatial[d] + w.low[d] + w.high[d] - w.reach(d);
    if (room < 0)
      return node.fail("a window of " + std::to_string(w.reach(d)) + " does not fit into " +
                       std::to_string(spatial[d]) + " with padding");
    w.count[d] = (ceiling ? (room + w.strides[d] - 1) / w.strides[d] : room / w.strides[d]) + 1;
    // A last window that would begin in the padding behind is left out.
    if (ceiling && (w.count[d] - 1) * w.strides[d] >= spatial[d] + w.low[d])
      --w.count[d];
  }
  return true;
}

Shape spatialOf(const Tensor &x) {
  Shape shape = x.shape();
  return Shape(shape.begin() + std::min<size_t>(2, shape.size()), shape.end());
}

/// What lies behind the operand so that the last window is whole: `high`, or more with ceil_mode.
int64_t highOf(const Windows &w, const Shape &spatial, size_t d) {
  return std::max<int64_t>((w.count[d] - 1) * w.strides[d] + w.reach(d) - spatial[d] - w.low[d], 0);
}

/// [top, bottom, left, right], as gpuc has padding of images.
Shape imagePadding(const Windows &w, const Shape &spatial) {
  return {w.low[0], highOf(w, spatial, 0), w.low[1], highOf(w, spatial, 1)};
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// Combines the elements of each window; outside of x there is `outside`.
Tensor combine(const Tensor &x, const Windows &w, double outside,
               const std::function<Tensor(const Tensor &, const Tensor &)> &with) {
  const Shape spatial = spatialOf(x);
  Shape low(x.rank(), 0), high(x.rank(), 0);
  for (size_t d = 0; d < w.rank(); ++d)
    low[d + 2] = w.low[d], high[d + 2] = highOf(w, spatial, d);
  Tensor padded = pad(x, low, high, outside), result;
  Shape offset(w.rank(), 0);
  for (;;) {
    Tensor part = padded;
    for (size_t d = 0; d < w.rank(); ++d) {
      int64_t begin = offset[d] * w.dilations[d];
      part = slice(part, d + 2, begin, begin + (w.count[d] - 1) * w.strides[d] + 1, w.strides[d]);
    }
    result = result ? with(result, part) : part;
    size_t d = w.rank();
    while (d > 0 && ++offset[d - 1] == w.kernel[d - 1])
      offset[--d] = 0;
    if (d == 0 || !result)
      return result;
  }
}

/// Whether a window along dimension `d` holds padding alone: it begins behind the image, or steps over it.
bool missesImage(const Windows &w, const Shape &spatial, size_t d) {
  constexpr int64_t kMostBegins = 1 << 20; // What is padded further fits nowhere.
  const int64_t last = (w.count[d] - 1) * w.strides[d] - w.low[d];
  if (last >= spatial[d])
    return true;
  for (int64_t begin = -w.low[d], n = 0; begin < 0 && begin <= last && n < kMostBegins;
       begin += w.strides[d], ++n) {
    const int64_t skipped = (-begin + w.dilations[d] - 1) / w.dilations[d];
    if (skipped >= w.kernel[d] || begin + skipped * w.dilations[d] >= spatial[d])
      return true;
  }
  return false;
}

bool missesImage(const Windows &w, const Shape &spatial) {
  for (size_t d = 0; d < w.rank(); ++d)
    if (missesImage(w, spatial, d))
      return true;
  return false;
}

/// Neither has padding a maximum, nor has nothing a mean.
bool failIfMissing(NodeScope &node, const Tensor &x, const Windows &w) {
  const bool misses = missesImage(w, spatialOf(x));
  if (misses)
    node.fail("a window holds padding alone: pads, or dilations, are too large");
  return misses;
}

/// Shifted slices are as many as the kernel has elements.
bool fitsSlices(NodeScope &node, const Windows &w) {
  int64_t elements = 1;
  for (int64_t extent : w.kernel)
    elements = std::min<int64_t>(elements * extent, 1 << 20);
  if (elements > 1024)
    node.fail("windows of " + std::to_string(elements) +
              " elements are supported for images of floating point only");
  return elements <= 1024;
}

bool readPool(NodeScope &node, const Tensor &x, Windows &w) {
  if (!x)
    return false;
  if (x.rank() < 3)
    return node.fail("pooling of shape " + toString(x.shape()));
  const Shape spatial = spatialOf(x), ones(spatial.size(), 1);
  w.kernel = node.integers("kernel_shape", {});
  w.strides = node.integers("strides", ones);
  w.dilations = node.integers("dilations", ones);
  return placeWindows(node, spatial, w);
}

/// gpuc's indices lie within an image, ONNX's in the whole tensor.
Tensor indexAll(NodeScope &node, const Tensor &indices, const Tensor &x) {
  if (node.integer("storage_order", 0))
    return node.fail("attribute 'storage_order' = 1 is not supported");
  const double image = static_cast<double>(x.extent(2) * x.extent(3));
  Tensor batch = iota(node.emitter, indices.shape(), DataType::i64, 0);
  Tensor channel = iota(node.emitter, indices.shape(), DataType::i64, 1);
  return indices + (batch * static_cast<double>(x.extent(1)) + channel) * image;
}

void lowerMaxPool(NodeScope &node) {
  Tensor x = node.input(0);
  Windows w;
  if (!readPool(node, x, w) || failIfMissing(node, x, w))
    return;
  Emitter &e = node.emitter;
  if (x.rank() == 4 && x.isFloat()) {
    std::vector<Tensor> results =
        e.emit("max_pool2d", {x},
               {e.attribute("window", w.kernel), e.attribute("strides", w.strides),
                e.attribute("padding", imagePadding(w, spatialOf(x))), e.attribute("dilation", w.dilations)});
    if (results.size() < 2)
      return;
    node.output(results[0]);
    if (node.wants(1))
      node.output(indexAll(node, results[1], x), 1);
    return;
  }
  if (!fitsSlices(node, w))
    return;
  double least = x.isFloat()                 ? -std::numeric_limits<double>::infinity()
                 : x.type() == DataType::ui8 ? 0
                                             : -128;
  if (!x.isFloat() && x.type() != DataType::ui8 && x.type() != DataType::i8)
    return void(node.fail("integers of 32 or 64 bits are not pooled"));
  node.output(combine(x, w, least, [](const Tensor &a, const Tensor &b) { return binary("max", a, b); }));
}

Tensor sumOf(const Tensor &x, const Windows &w) {
  return combine(x, w, 0, [](const Tensor &a, const Tensor &b) { return a + b; });
}

/// How many elements of each window count: those inside, or with `padding` those in the padding that was
/// asked for too.
Tensor windowSizes(const Tensor &x, Windows w, bool padding) {
  Shape shape = x.shape();
  shape[0] = shape[1] = 1;
  const Shape spatial = spatialOf(x);
  for (size_t d = 0; d < w.rank() && padding; ++d) {
    shape[d + 2] += w.low[d] + w.high[d];
    w.low[d] = 0; // What lies behind `high`, for a last window that ceil_mode adds, does not count.
  }
  return sumOf(x.emitter()->constant(shape, x.type(), 1), w);
}

void lowerAveragePool(NodeScope &node) {
  Tensor x = node.input(0);
  Windows w;
  if (!readPool(node, x, w))
    return;
  Emitter &e = node.emitter;
  const bool padding = node.integer("count_include_pad", 0);
  if (!padding && failIfMissing(node, x, w))
    return;
  const Shape spatial = spatialOf(x);
  bool plain = std::count(w.dilations.begin(), w.dilations.end(), 1) == static_cast<int64_t>(w.rank()) &&
               !missesImage(w, spatial);
  for (size_t d = 0; d < w.rank(); ++d)
    plain &= !padding || highOf(w, spatial, d) <= w.high[d];
  if (x.rank() == 4 && plain) {
    std::vector<mlir::NamedAttribute> attributes = {e.attribute("window", w.kernel),
                                                    e.attribute("strides", w.strides),
                                                    e.attribute("padding", imagePadding(w, spatial))};
    if (!padding)
      attributes.push_back(e.flag("exclude_padding"));
    return node.output(e.op("avg_pool2d", {x}, attributes));
  }
  if (fitsSlices(node, w))
    node.output(sumOf(x, w) / windowSizes(x, w, padding));
}

Tensor power(const Tensor &x, double exponent) {
  return exponent == 1 ? x : exponent == 2 ? x * x : binary("pow", x, like(x, exponent));
}

void lowerLpPool(NodeScope &node) {
  Tensor x = node.input(0);
  Windows w;
  if (!readPool(node, x, w) || !fitsSlices(node, w))
    return;
  const double p = static_cast<double>(node.integer("p", 2));
  Tensor sum = sumOf(power(unary("abs", x), p), w);
  node.output(p == 2 ? unary("sqrt", sum) : power(sum, 1 / p));
}

void lowerGlobal(NodeScope &node, const char *reduction) {
  Tensor x = node.input(0);
  node.output(reduce(reduction, x, dimsFrom(2, x.rank()), /*keep=*/true));
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// As an image of height 1 where there is one spatial dimension.
Tensor asImage(const Tensor &x) { return x.rank() == 3 ? unsqueeze(x, {2}) : x; }

void asImage(Windows &w) {
  if (w.rank() == 2)
    return;
  for (Shape *list : {&w.kernel, &w.strides, &w.dilations, &w.count})
    list->insert(list->begin(), 1);
  w.low.insert(w.low.begin(), 0), w.high.insert(w.high.begin(), 0);
}

bool readConvolution(NodeScope &node, const Tensor &x, const Tensor &filter, Windows &w) {
  if (!x || !filter)
    return false;
  if ((x.rank() != 3 && x.rank() != 4) || filter.rank() != x.rank())
    return node.fail("convolution of shapes " + toString(x.shape()) + " and " + toString(filter.shape()) +
                     ": one or two spatial dimensions are supported");
  const Shape spatial = spatialOf(filter), ones(spatial.size(), 1);
  w.kernel = node.integers("kernel_shape", spatial);
  w.strides = node.integers("strides", ones);
  w.dilations = node.integers("dilations", ones);
  if (w.kernel == spatial)
    return true;
  return node.fail("kernel_shape " + toString(w.kernel) + " of a filter of shape " +
                   toString(filter.shape()));
}

std::vector<mlir::NamedAttribute> convolutionAttributes(Emitter &e, const Windows &w, int64_t groups) {
  return {e.attribute("strides", w.strides),
          e.attribute("padding", Shape{w.low[0], w.high[0], w.low[1], w.high[1]}),
          e.attribute("dilation", w.dilations), e.attribute("groups", groups)};
}

/// Back from an image, and the bias added.
void outputConvolution(NodeScope &node, Tensor result, int64_t rank) {
  if (rank == 3 && result) {
    Shape shape = result.shape();
    shape.erase(shape.begin() + 2);
    result = reshape(result, shape);
  }
  if (node.has(2))
    result = result + beside(node.input(2), 1, rank);
  node.output(result);
}

void lowerConv(NodeScope &node) {
  Tensor x = node.input(0), filter = node.input(1);
  Windows w;
  if (!readConvolution(node, x, filter, w) || !placeWindows(node, spatialOf(x), w))
    return;
  asImage(w);
  Emitter &e = node.emitter;
  Tensor result =
      e.op("conv2d", {asImage(x), asImage(filter)}, convolutionAttributes(e, w, node.integer("group", 1)));
  outputConvolution(node, result, x.rank());
}

/// The transpose of a convolution: conv2d's gradient by its input. Extents follow from strides and padding,
/// or the padding from the extents (output_shape, auto_pad).
void lowerConvTranspose(NodeScope &node) {
  Tensor x = node.input(0), filter = node.input(1);
  Windows w;
  if (!readConvolution(node, x, filter, w))
    return;
  const Shape spatial = spatialOf(x);
  const size_t rank = spatial.size();
  std::string automatic = node.text("auto_pad", "NOTSET");
  Shape pads = node.integers("pads", Shape(2 * rank, 0)),
        extra = node.integers("output_padding", Shape(rank, 0));
  Shape asked = node.integers("output_shape", {});
  if (w.strides.size() != rank || w.dilations.size() != rank || pads.size() != 2 * rank ||
      extra.size() != rank || (!asked.empty() && asked.size() != rank))
    return void(node.fail("strides, dilations, pads, output_padding or output_shape do not suit the input"));
  const int64_t groups = node.integer("group", 1);
  Shape extents;
  w.low.resize(rank), w.high.resize(rank), w.count = spatial;
  for (size_t d = 0; d < rank; ++d) {
    int64_t whole = (spatial[d] - 1) * w.strides[d] + extra[d] + w.reach(d);
    w.low[d] = pads[d], w.high[d] = pads[d + rank];
    int64_t extent = whole - w.low[d] - w.high[d];
    const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (!asked.empty() || same) {
      extent = asked.empty() ? spatial[d] * w.strides[d] : asked[d];
      int64_t total = std::max<int64_t>(whole - extent, 0);
      w.low[d] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.high[d] = total - w.low[d];
    }
    // What output_padding, or an extent beyond the whole, adds behind is reached by no window, or by ones cut
    // short.
    w.high[d] -= extra[d] + std::max<int64_t>(extent - whole, 0);
    extents.push_back(extent);
  }
  Shape result = {x.extent(0), filter.extent(1) * groups};
  result.insert(result.end(), extents.begin(), extents.end());
  asImage(w);
  if (rank == 1)
    result.insert(result.begin() + 2, 1);
  // Negative padding behind is elements that are computed of nothing: more rows, then zeros.
  Shape computed = result, zeros(result.size(), 0);
  for (size_t d = 0; d < 2; ++d)
    if (w.high[d] < 0) {
      int64_t reached = (w.count[d] - 1) * w.strides[d] + w.reach(d) - w.low[d];
      zeros[d + 2] = std::max<int64_t>(computed[d + 2] - reached, 0);
      computed[d + 2] -= zeros[d + 2];
      w.high[d] = std::max<int64_t>(w.high[d] + zeros[d + 2], 0);
    }
  Emitter &e = node.emitter;
  Tensor value = e.op("conv2d_input_gradient", {asImage(x), asImage(filter)},
                      convolutionAttributes(e, w, groups), e.tensorType(computed, x.type()));
  outputConvolution(node, pad(value, Shape(computed.size(), 0), zeros, 0), x.rank());
}

} // namespace

void addWindows(OpTable &table) {
  const std::vector<std::string> pool = {"auto_pad",     "ceil_mode", "dilations",
                                         "kernel_shape", "pads",      "strides"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), pool.begin(), pool.end());
    return more;
  };
  // storage_order is about the indices alone.
  table["MaxPool"] = {lowerMaxPool, with({"storage_order"})};
  table["AveragePool"] = {lowerAveragePool, with({"count_include_pad"})};
  table["LpPool"] = {lowerLpPool, with({"p"})};
  table["GlobalAveragePool"] = {[](NodeScope &node) { lowerGlobal(node, "mean"); }, {}};
  table["GlobalMaxPool"] = {[](NodeScope &node) { lowerGlobal(node, "reduce_max"); }, {}};
  table["Conv"] = {lowerConv, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}};
  table["ConvTranspose"] = {lowerConvTranspose,
                            {"auto_pad", "dilations", "group", "kernel_shape", "output_padding",
                             "output_shape", "pads", "strides"}};
}

} // namespace gpuc::onnx
