//===- SignalOps.cpp - Fourier transforms and windows -----------------------===//

#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/OpTable.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gpuc::onnx {
namespace {

/// (a0 - a1 · cos(2πn / N) + a2 · cos(4πn / N)) / whole for n < size, with N = size if periodic, else size
/// - 1.
template <int a0, int a1, int a2, int whole> void lowerWindow(NodeScope &node) {
  std::optional<double> size = node.requireNumber(0, "size");
  std::optional<DataType> type = node.hasAttribute("output_datatype") ? castTarget(node) : DataType::f32;
  if (!size || !type || !(*size >= 1 && *size <= 1 << 20))
    return void(node.fail("a window has between 1 and 2^20 elements"));
  const double period = node.integer("periodic", 1) ? *size : *size - 1;
  std::vector<double> elements(static_cast<size_t>(*size));
  for (size_t n = 0; n < elements.size(); ++n) {
    double angle = 2 * std::numbers::pi * static_cast<double>(n) / std::max(period, 1.0);
    elements[n] = (a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle)) / whole;
  }
  node.output(fromNumbers(*type, {static_cast<int64_t>(elements.size())}, elements));
}

//===----------------------------------------------------------------------===//
// DFT
//===----------------------------------------------------------------------===//

/// The matrices of exp(∓2πi nk / length): cosines and sines, [in, out], each times weight(n).
struct Waves {
  std::vector<double> cosines, sines;
};

template <typename Weight> Waves wavesOf(int64_t in, int64_t out, int64_t length, Weight weight) {
  Waves made;
  for (int64_t n = 0; n < in; ++n)
    for (int64_t k = 0; k < out; ++k) {
      // The product is reduced first: it need not be exact as a double.
      double angle = 2 * std::numbers::pi * static_cast<double>(n * k % length) / static_cast<double>(length);
      made.cosines.push_back(weight(n) * std::cos(angle));
      made.sines.push_back(weight(n) * std::sin(angle));
    }
  return made;
}

/// x cut, or padded with zeros, to `extent` along `dim`.
Tensor fit(const Tensor &x, int64_t dim, int64_t extent) {
  Shape low(x.rank(), 0), high(x.rank(), 0);
  if (x && x.extent(dim) < extent)
    high[dim] = extent - x.extent(dim);
  return pad(slice(x, dim, 0, std::min(extent, x.extent(dim))), low, high, 0);
}

/// By the definition, as products with constant matrices: no fast transform. The last dimension holds real
/// and imaginary parts, or real ones alone.
void lowerDft(NodeScope &node) {
  constexpr int64_t kMostLength = 4096;
  Tensor x = node.input(0);
  const bool inverse = node.integer("inverse", 0), onesided = node.integer("onesided", 0);
  const bool byInput = node.importer().opset() >= 20;
  int64_t dim = byInput ? -2 : node.integer("axis", 1);
  if (byInput && node.has(2))
    dim = static_cast<int64_t>(node.requireNumber(2, "axis").value_or(0));
  dim = dimension(x, dim);
  const int64_t parts = x.rank() > 0 ? x.extent(x.rank() - 1) : 0;
  if (dim < 0 || dim == x.rank() - 1 || parts < 1 || parts > 2)
    return void(node.fail("a signal of shape " + toString(x.shape())));
  int64_t length = inverse && onesided ? 2 * (x.extent(dim) - 1) : x.extent(dim);
  if (node.has(1))
    length = static_cast<int64_t>(node.requireNumber(1, "dft_length").value_or(0));
  if (node.failed())
    return;
  if (length < 1 || length > kMostLength)
    return void(node.fail("a transform of length " + std::to_string(length) + ": 1 to " +
                          std::to_string(kMostLength)));
  const int64_t last = x.rank() - 1, half = length / 2 + 1;
  const int64_t in = inverse && onesided ? half : length, out = onesided && !inverse ? half : length;
  // In f64: frequencies that are not there cancel to 0, of which f32 leaves a residue.
  const DataType type = x.type();
  x = cast(x, DataType::f64);
  Tensor real = fit(slice(x, last, 0, 1), dim, in);
  Tensor imaginary = parts == 2 ? fit(slice(x, last, 1, 2), dim, in) : Tensor();
  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1;
  // Half a spectrum stands for the other half too, but for the first frequency and, of an even length, the
  // last.
  Waves waves = wavesOf(in, out, length, [&](int64_t n) {
    return inverse && onesided && n > 0 && 2 * n != length ? 2 * scale : scale;
  });
  auto times = [&](const Tensor &part, const std::vector<double> &matrix) {
    return multiplyAlong(part, dim, out, matrix);
  };
  Tensor a = times(real, waves.cosines), b = times(real, waves.sines);
  if (!inverse)
    b = unary("neg", b);
  if (imaginary) {
    Tensor cosine = times(imaginary, waves.cosines), sine = times(imaginary, waves.sines);
    a = inverse ? a - sine : a + sine;
    b = b + cosine;
  }
  node.output(cast(inverse && onesided ? a : concat({a, b}, last), type));
}

} // namespace

void addSignals(OpTable &table) {
  table["DFT"] = {lowerDft, {"axis", "inverse", "onesided"}};
  table["HannWindow"] = {lowerWindow<1, 1, 0, 2>, {"output_datatype", "periodic"}};
  table["HammingWindow"] = {lowerWindow<25, 21, 0, 46>, {"output_datatype", "periodic"}};
  table["BlackmanWindow"] = {lowerWindow<42, 50, 8, 100>, {"output_datatype", "periodic"}};
}

} // namespace gpuc::onnx
