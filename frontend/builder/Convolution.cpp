//===- Convolution.cpp - Layers of convolution and pooling ------------------===//

#include "frontend/builder/Convolution.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace gpuc::nn {

namespace {

/// ", name=value" where the value is not the default.
std::string unless(const char *name, int64_t value, int64_t fallback) {
  return value == fallback ? "" : std::string(", ") + name + "=" + std::to_string(value);
}

std::string text(const Conv2dOptions &options) {
  return unless("stride", options.stride, 1) + unless("padding", options.padding, 0) +
         unless("dilation", options.dilation, 1) + unless("groups", options.groups, 1) +
         (options.bias ? "" : ", bias=false");
}

std::string text(const std::string &name, int64_t window, const Pool2dOptions &options) {
  return name + "(" + std::to_string(window) + unless("stride", options.stride, 0) +
         unless("padding", options.padding, 0) + (options.ceilMode ? ", ceil_mode=true" : "") +
         (options.countIncludePad ? ")" : ", count_include_pad=false)");
}

ConvOptions toOptions(const Conv2dOptions &options) {
  return {{options.stride, options.stride},
          padded(options.padding, options.padding),
          {options.dilation, options.dilation},
          options.groups};
}

/// "" if groups divide both numbers of channels.
std::string mistakeIn(int64_t in, int64_t out, int64_t kernel, const Conv2dOptions &options) {
  if (in < 1 || out < 1 || kernel < 1)
    return "needs channels and a kernel of at least 1";
  if (options.groups < 1 || in % options.groups != 0 || out % options.groups != 0)
    return "needs channels that its groups divide";
  return "";
}

/// PyTorch's first values: uniform in ±1/√fanIn.
Initializer uniformBy(int64_t fanIn) {
  return Initializer::uniform(1 / std::sqrt(static_cast<double>(fanIn)));
}

/// y [batch, channels, …] plus one number for each channel.
Tensor plusBias(const Tensor &y, const Tensor &bias) {
  if (!y.valid() || !bias.valid())
    return {};
  Shape shape(y.rank() - 1, 1);
  shape.front() = bias.shape().front();
  return y + reshape(bias, shape);
}

PoolOptions poolOptions(const Tensor &x, int64_t window, const Pool2dOptions &options) {
  const int64_t stride = options.stride == 0 ? window : options.stride;
  PoolOptions result = {{stride, stride}, padded(options.padding, options.padding)};
  if (options.ceilMode && x.rank() == 4)
    result.padding = ceilPadding(x, {window, window}, result);
  return result;
}

} // namespace

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

std::string Convolution::describe() const {
  const char *name = kind_ == Kind::rows ? "Conv1d" : kind_ == Kind::images ? "Conv2d" : "ConvTranspose2d";
  return llvm::formatv("{0}({1}, {2}, {3}{4}{5})", name, in_, out_, kernel_, text(options_),
                       unless("output_padding", outputPadding_, 0));
}

Tensor Convolution::convolve(const Tensor &x, const Tensor &weight) const {
  switch (kind_) {
  case Kind::rows:
    return conv1d(x, weight, options_.stride, {options_.padding, options_.padding}, options_.dilation,
                  options_.groups);
  case Kind::images:
    return conv2d(x, weight, toOptions(options_));
  case Kind::transposed:
    return convTranspose2d(x, weight, toOptions(options_), {outputPadding_, outputPadding_});
  }
  return {};
}

Tensor Convolution::forward(const Tensor &x) {
  if (std::string mistake = mistakeIn(in_, out_, kernel_, options_); !mistake.empty())
    return x.graph()->fail(describe() + " " + mistake);
  const bool transposed = kind_ == Kind::transposed;
  const int64_t each = (transposed ? out_ : in_) / options_.groups;
  const int64_t fanIn = each * kernel_ * (kind_ == Kind::rows ? 1 : kernel_);
  Shape shape = {transposed ? in_ : out_, each};
  shape.insert(shape.end(), kind_ == Kind::rows ? 1 : 2, kernel_);
  Tensor weight = parameter(x, "weight", shape, options_.weight.value_or(Initializer::kaimingUniform(fanIn)));
  Tensor y = convolve(x, weight);
  return options_.bias ? plusBias(y, parameter(x, "bias", {out_}, uniformBy(fanIn))) : y;
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

MaxPool2d::MaxPool2d(int64_t window, Pool2dOptions options)
    : FunctionLayer(text("MaxPool2d", window, options), [=](const Tensor &x) {
        return maxPool2d(x, {window, window}, poolOptions(x, window, options)).values;
      }) {}

AvgPool2d::AvgPool2d(int64_t window, Pool2dOptions options)
    : FunctionLayer(text("AvgPool2d", window, options), [=](const Tensor &x) -> Tensor {
        // PyTorch counts padding that was asked for, but not what ceil_mode reaches beyond it.
        if (options.ceilMode && options.countIncludePad && options.padding > 0)
          return x.graph()->fail(text("AvgPool2d", window, options) +
                                 ": ceil_mode with padding needs count_include_pad=false");
        const bool countIncludePad = options.countIncludePad && !options.ceilMode;
        return avgPool2d(x, {window, window}, poolOptions(x, window, options), countIncludePad);
      }) {}

static Tensor adaptiveAvgPool2d(const Tensor &x, int64_t rows, int64_t columns) {
  const Shape image = x.shape();
  if (image.size() != 4 || rows < 1 || columns < 1 || image[2] % rows != 0 || image[3] % columns != 0)
    return x.graph()->fail(
        llvm::formatv("AdaptiveAvgPool2d({0}, {1}) takes [?, channels, n · {0}, n · {1}], got {2}", rows,
                      columns, toString(image)));
  if (rows == 1 && columns == 1)
    return reshape(mean(x, {2, 3}), {image[0], image[1], 1, 1});
  Pair window = {image[2] / rows, image[3] / columns};
  return avgPool2d(x, window, {.stride = window});
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(int64_t rows, int64_t columns)
    : FunctionLayer(llvm::formatv("AdaptiveAvgPool2d({0}, {1})", rows, columns),
                    [=](const Tensor &x) { return adaptiveAvgPool2d(x, rows, columns); }) {}

} // namespace gpuc::nn
