//===- ResizeOps.cpp - Pictures, signals and volumes in other sizes ------------===//
//
// F.interpolate's modes, one dimension after another. Formulas: PyTorch's UpSample.h.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Resample.h"
#include "frontend/torch/OpTable.h"

#include <algorithm>
#include <cmath>

namespace gpuc::torch {
namespace {

using onnx::Taps;

/// One dimension: the sources of two neighbours lie `step` apart.
struct Axis {
  int64_t from = 0, to = 0;
  double step = 1;
  bool alignCorners = false;
  bool isF64 = false, isOneChannel = false;
};

/// By the factor if one is given, else by the extents.
double stepOf(OpScope &op, size_t d, int64_t from, int64_t to) {
  static constexpr const char *kFactors[] = {"scales_h", "scales_w"};
  const std::vector<double> factors = op.numbers("scale_factors");
  if (d < factors.size() && !op.has("output_size"))
    return 1 / factors[d];
  if (d < 2 && op.has(kFactors[d]))
    return 1 / op.number(kFactors[d], 1);
  return static_cast<double>(from) / static_cast<double>(to);
}

/// Where element `at` lies in the input.
double placeOf(const Axis &axis, int64_t at) {
  const double place = static_cast<double>(at);
  return onnx::snapped(axis.alignCorners ? place * axis.step : (place + 0.5) * axis.step - 0.5);
}

/// As PyTorch, the last step by f32: 3 times 1 / 0.6 is 5 and no less.
int64_t floorOf(const Axis &axis, double at) {
  const double place = axis.isF64 ? at * axis.step : at * static_cast<double>(static_cast<float>(axis.step));
  return static_cast<int64_t>(static_cast<float>(place));
}

/// Of one channel, which PyTorch takes for channels-last, twice as many are two of each, whatever the factor.
Taps nearest(const Axis &axis, int64_t at) {
  if (axis.isOneChannel && axis.to == 2 * axis.from)
    return {at / 2, {1.0}};
  return {floorOf(axis, static_cast<double>(at)), {1.0}};
}

/// The element in which the middle lies.
Taps nearestExact(const Axis &axis, int64_t at) {
  return {floorOf(axis, static_cast<double>(at) + 0.5), {1.0}};
}

Taps linear(const Axis &axis, int64_t at) {
  const double place = placeOf(axis, at), low = std::floor(place), part = place - low;
  return {static_cast<int64_t>(low), {1 - part, part}};
}

double triangle(double distance) { return std::max(1 - std::fabs(distance), 0.0); }

/// Keys' cubic kernel [Keys 1981] with parameter a.
double keys(double distance, double a) {
  const double x = std::fabs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Taps cubic(const Axis &axis, int64_t at) {
  const double place = placeOf(axis, at), low = std::floor(place), part = place - low;
  Taps taps = {static_cast<int64_t>(low) - 1, {}};
  for (int k = -1; k <= 2; ++k)
    taps.weights.push_back(keys(k - part, -0.75));
  return taps;
}

/// A kernel as wide as what becomes one element, of what lies within the borders.
Taps antialiased(const Axis &axis, int64_t at, double reach, double (*kernel)(double)) {
  const double squeeze = std::max(axis.step, 1.0), support = reach * squeeze;
  const double middle = axis.step * (static_cast<double>(at) + 0.5);
  const auto first = std::max<int64_t>(static_cast<int64_t>(middle - support + 0.5), 0);
  const auto end = std::min(static_cast<int64_t>(middle + support + 0.5), axis.from);
  Taps taps = {first, {}};
  double sum = 0;
  for (int64_t k = first; k < end; ++k) {
    taps.weights.push_back(kernel((static_cast<double>(k) - middle + 0.5) / squeeze));
    sum += taps.weights.back();
  }
  for (double &weight : taps.weights)
    weight /= sum;
  return taps;
}

Taps antialiasedLinear(const Axis &axis, int64_t at) { return antialiased(axis, at, 1, triangle); }

Taps antialiasedCubic(const Axis &axis, int64_t at) {
  return antialiased(axis, at, 2, [](double distance) { return keys(distance, -0.5); });
}

Axis axisOf(OpScope &op, const Tensor &x, int64_t dim) {
  Axis axis = {x.extent(dim), op.shape()[dim], 0, op.flag("align_corners", false)};
  axis.isF64 = x.type() == DataType::f64;
  axis.isOneChannel = x.rank() > 3 && x.extent(1) == 1;
  if (!axis.alignCorners)
    axis.step = stepOf(op, dim - 2, axis.from, axis.to);
  else if (axis.to > 1)
    axis.step = static_cast<double>(axis.from - 1) / static_cast<double>(axis.to - 1);
  return axis;
}

struct Resizing {
  int64_t dim = 0;
  std::vector<Taps> taps;
};

/// By matrices first, while there is little to multiply; by slices the last dimension first, since those
/// before it have longer rows then.
template <Taps (*tapsOf)(const Axis &, int64_t)> void lowerResize(OpScope &op) {
  Tensor x = op.tensor(op.has("input") ? "input" : "self");
  std::vector<Resizing> byMatrix, bySlices;
  for (int64_t dim = 2; x && dim < x.rank(); ++dim) {
    const Axis axis = axisOf(op, x, dim);
    if (axis.from == axis.to)
      continue;
    Resizing each = {dim, {}};
    for (int64_t at = 0; at < axis.to; ++at)
      each.taps.push_back(tapsOf(axis, at));
    (onnx::takesSlices(x, dim, each.taps) ? bySlices : byMatrix).push_back(std::move(each));
  }
  byMatrix.insert(byMatrix.end(), bySlices.rbegin(), bySlices.rend());
  for (const Resizing &each : byMatrix)
    x = onnx::resample(x, each.dim, each.taps);
  if (x)
    op.output(x);
}

} // namespace

void addResizes(OpTable &table) {
  for (const char *name : {"upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec"})
    table[name] = {lowerResize<nearest>, {"input", "output_size", "scale_factors"}};
  for (const char *name :
       {"_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec"})
    table[name] = {lowerResize<nearestExact>, {"input", "output_size", "scale_factors"}};
  const std::vector<std::string> between = {"input", "output_size", "align_corners", "scale_factors"};
  for (const char *name : {"upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec"})
    table[name] = {lowerResize<linear>, between};
  table["upsample_bicubic2d.vec"] = {lowerResize<cubic>, between};
  const std::vector<std::string> smooth = {"self", "output_size", "align_corners", "scales_h", "scales_w"};
  table["_upsample_bilinear2d_aa.default"] = {lowerResize<antialiasedLinear>, smooth};
  table["_upsample_bicubic2d_aa.default"] = {lowerResize<antialiasedCubic>, smooth};
}

} // namespace gpuc::torch
