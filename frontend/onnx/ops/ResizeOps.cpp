//===- ResizeOps.cpp - Resize -----------------------------------------------===//
//
// Resizing is linear and works along one dimension after the other. Which elements an output element is made
// of, and with what weights, depends on extents alone and is computed here; Resample makes ops of it.
// Formulas: ONNX's documentation of Resize.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Importer.h"
#include "frontend/onnx/Resample.h"
#include "frontend/onnx/ops/OpTable.h"
#include "frontend/onnx/reader/Upgrade.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace gpuc::onnx {
namespace {

struct Settings {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool antialias = false, excludeOutside = false;
  bool wholeWidth = false; ///< align_corners by the extent that results, not by scale * in.
};

/// A dimension may need a matrix.
constexpr int64_t kMostExtent = 8192;

/// One dimension: `scale` need not be out / in exactly.
struct Axis {
  int64_t dim = 0, in = 0, out = 0;
  double scale = 1, roiBegin = 0, roiEnd = 1;
};

/// Where output element `at` lies in the input.
double originOf(const Settings &s, const Axis &axis, double at) {
  const double in = static_cast<double>(axis.in), width = axis.scale * in;
  if (s.coordinates == "align_corners") {
    const double last = (s.wholeWidth ? static_cast<double>(axis.out) : width) - 1;
    return last == 0 ? 0 : at * (in - 1) / last;
  }
  if (s.coordinates == "asymmetric")
    return at / axis.scale;
  if (s.coordinates == "tf_crop_and_resize") {
    double span = (axis.roiEnd - axis.roiBegin) * (in - 1);
    return (width == 1 ? span / 2 : at * span / (width - 1)) + axis.roiBegin * (in - 1);
  }
  double centre = (at + 0.5) / axis.scale - 0.5;
  if (s.coordinates == "pytorch_half_pixel")
    return width == 1 ? -0.5 : centre;
  if (s.coordinates == "half_pixel_symmetric")
    return in / 2 * (1 - static_cast<double>(axis.out) / width) + centre;
  return centre;
}

/// Keys' cubic kernel [Keys 1981] with parameter a.
double cubicKernel(double x, double a) {
  x = std::fabs(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// The nearer of `left` and the element behind it, of one that lies `ratio` in [0, 1) behind it.
Taps nearestOf(const Settings &s, double scale, int64_t left, double ratio) {
  const bool floors = s.nearest == "floor" || (s.nearest == kNearestOfOpset10 && scale >= 1);
  const bool isLeft = ratio == 0 || floors || (s.nearest == "round_prefer_floor" && ratio <= 0.5) ||
                      (s.nearest == "round_prefer_ceil" && ratio < 0.5);
  return {isLeft ? left : left + 1, {1.0}};
}

/// Weights of the elements around one that lies `ratio` in (0, 1] behind its left neighbour. With antialias
/// the kernel is as wide as what becomes one element.
std::vector<double> weightsOf(const Settings &s, double scale, double ratio) {
  const double squeeze = s.antialias ? std::min(scale, 1.0) : 1, reach = s.mode == "cubic" ? 2 : 1;
  const int64_t start = static_cast<int64_t>(std::floor(-reach / squeeze)) + 1, count = 2 - 2 * start;
  std::vector<double> weights(count);
  for (int64_t k = 0; k < count; ++k) {
    double distance = (static_cast<double>(start + k) - ratio) * squeeze;
    weights[k] = s.mode == "cubic" ? cubicKernel(distance, s.cubic) : std::max(1 - std::fabs(distance), 0.0);
  }
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double &weight : weights)
    weight /= s.antialias ? sum : 1;
  return weights;
}

Taps tapsOf(const Settings &s, const Axis &axis, int64_t at) {
  Taps taps;
  double origin = originOf(s, axis, static_cast<double>(at));
  // 3 / 0.6 is 5 to PyTorch and ONNX Runtime, and no less.
  origin = s.mode == "nearest" ? static_cast<float>(origin) : snapped(origin);
  const double floor = std::floor(origin);
  if (s.mode == "nearest")
    return nearestOf(s, axis.scale, static_cast<int64_t>(floor), origin - floor);
  const bool whole = origin == floor;
  taps.weights = weightsOf(s, axis.scale, whole ? 1 : origin - floor);
  const int64_t count = static_cast<int64_t>(taps.weights.size());
  taps.first = static_cast<int64_t>(floor) - (whole ? 1 : 0) - count / 2 + 1;
  if (!s.excludeOutside)
    return taps;
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) {
    int64_t source = taps.first + k;
    taps.weights[k] = source < 0 || source >= axis.in ? 0 : taps.weights[k];
    sum += taps.weights[k];
  }
  for (double &weight : taps.weights)
    weight /= sum;
  return taps;
}

/// Whether the extrapolation value stands where output element `at` would.
bool isOutside(const Settings &s, const Axis &axis, int64_t at) {
  const double origin = originOf(s, axis, static_cast<double>(at));
  return s.coordinates == "tf_crop_and_resize" && (origin < 0 || origin > static_cast<double>(axis.in - 1));
}

Tensor resizeOne(const Settings &s, const Tensor &x, const Axis &axis) {
  std::vector<Taps> taps;
  Shape outside;
  for (int64_t o = 0; o < axis.out; ++o) {
    taps.push_back(tapsOf(s, axis, o));
    outside.push_back(isOutside(s, axis, o));
  }
  Tensor result = resample(x, axis.dim, taps);
  if (llvm::all_of(outside, [](int64_t is) { return !is; }))
    return result;
  Tensor mask = x.emitter()->constant(*fromIntegers(DataType::i1, {axis.out}, outside));
  return select(beside(mask, axis.dim, x.rank()), like(result, s.extrapolation), result);
}

/// Extents and scales from `scales` or `sizes`; false after an error.
bool readAxes(NodeScope &node, const Tensor &x, std::vector<Axis> &axes) {
  const Shape dims = node.integers("axes", dimsFrom(0, x.rank()));
  HostTensorPtr roi = node.has(1) && node.shapeOf(1) != Shape{0} ? node.require(1, "roi") : nullptr;
  const bool scaled = node.has(2) && node.shapeOf(2) != Shape{0};
  HostTensorPtr given = scaled ? node.require(2, "scales") : node.require(3, "sizes");
  if (node.failed())
    return false;
  std::vector<double> numbers = numbersOf(*given), region = roi ? numbersOf(*roi) : std::vector<double>();
  if (numbers.size() != dims.size() || (!region.empty() && region.size() != 2 * dims.size()))
    return node.fail("scales, sizes or roi have not one entry for each axis");
  for (size_t i = 0; i < dims.size(); ++i) {
    Axis axis;
    axis.dim = dimension(x, dims[i]);
    if (axis.dim < 0)
      return false;
    axis.in = x.extent(axis.dim);
    if (axis.in == kBatch) {
      // Sizes that were taken from the batch, or a scale of 1, leave it as it is.
      if (numbers[i] == 1 || (!scaled && given->symbolic))
        continue;
      return node.fail("resizes the batch, which is open: bind it with --dim NAME=N");
    }
    const double in = static_cast<double>(axis.in);
    axis.scale = scaled ? decimalOf(static_cast<float>(numbers[i])) : numbers[i] / in;
    double out = scaled ? std::floor(static_cast<float>(in * axis.scale)) : numbers[i];
    if (!(axis.scale > 0) || !(out >= 1) || axis.in < 1 || axis.in > kMostExtent || out > kMostExtent)
      return node.fail("extent " + std::to_string(axis.in) + " becomes " + std::to_string(out));
    axis.out = static_cast<int64_t>(out);
    if (!region.empty())
      axis.roiBegin = region[i], axis.roiEnd = region[i + dims.size()];
    axes.push_back(axis);
  }
  std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || scaled || axes.empty())
    return true;
  double scale = axes[0].scale;
  for (const Axis &axis : axes)
    scale = policy == "not_larger" ? std::min(scale, axis.scale) : std::max(scale, axis.scale);
  for (Axis &axis : axes) {
    axis.scale = scale;
    axis.out = static_cast<int64_t>(std::floor(scale * static_cast<double>(axis.in) + 0.5));
  }
  return true;
}

/// What is misspelt would be computed by another mode.
bool checkTexts(NodeScope &node) {
  static const std::map<std::string, std::set<std::string>> all = {
      {"coordinate_transformation_mode",
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_crop_and_resize"}},
      {"keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}},
      {"mode", {"nearest", "linear", "cubic"}},
      {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", kNearestOfOpset10}},
  };
  for (const auto &[name, known] : all)
    if (std::string given = node.text(name.c_str(), *known.begin()); !known.count(given))
      return node.fail("attribute '" + name + "' = '" + given + "' is not supported");
  return true;
}

void lowerResize(NodeScope &node) {
  Tensor x = node.input(0);
  Settings s{node.text("mode", "nearest"), node.text("coordinate_transformation_mode", "half_pixel"),
             node.text("nearest_mode", "round_prefer_floor")};
  s.cubic = node.number("cubic_coeff_a", -0.75);
  s.extrapolation = node.number("extrapolation_value", 0);
  s.antialias = node.integer("antialias", 0);
  s.excludeOutside = node.integer("exclude_outside", 0);
  // What PyTorch exported has the corners where PyTorch has them; ONNX's own examples have the last one
  // beyond.
  s.wholeWidth = node.importer().exporter() != Exporter::other;
  if (s.nearest == kNearestOfOpset10 && s.wholeWidth)
    s.nearest = "floor"; // as PyTorch
  std::vector<Axis> axes;
  if (!x || !checkTexts(node) || !readAxes(node, x, axes))
    return;
  if (s.mode != "nearest" && !x.isFloat())
    return void(node.fail("integers are resized by mode nearest only"));
  for (const Axis &axis : axes)
    if (axis.out != axis.in || axis.scale != 1 || s.coordinates == "tf_crop_and_resize")
      x = resizeOne(s, x, axis);
  node.output(x);
}

} // namespace

void addResize(OpTable &table) {
  table["Resize"] = {lowerResize,
                     {"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a",
                      "exclude_outside", "extrapolation_value", "keep_aspect_ratio_policy", "mode",
                      "nearest_mode"}};
}

} // namespace gpuc::onnx
