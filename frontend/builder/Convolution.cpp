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

std::string text(int64_t window, const Pool2dOptions &options) {
  return std::to_string(window) + unless("stride", options.stride, 0) +
         unless("padding", options.padding, 0) + (options.ceilMode ? ", ceil_mode=true" : "") +
         (options.countIncludePad ? "" : ", count_include_pad=false");
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

std::string Conv2d::describe() const {
  return llvm::formatv("Conv2d({0}, {1}, {2}{3})", in_, out_, kernel_, text(options_));
}

Tensor Conv2d::forward(const Tensor &x) {
  if (std::string mistake = mistakeIn(in_, out_, kernel_, options_); !mistake.empty())
    return x.graph()->fail(describe() + " " + mistake);
  const int64_t each = in_ / options_.groups, fanIn = each * kernel_ * kernel_;
  Tensor weight = parameter(x, "weight", {out_, each, kernel_, kernel_},
                            options_.weight.value_or(Initializer::kaimingUniform(fanIn)));
  Tensor y = conv2d(x, weight, toOptions(options_));
  return options_.bias ? plusBias(y, parameter(x, "bias", {out_}, uniformBy(fanIn))) : y;
}

std::string Conv1d::describe() const {
  return llvm::formatv("Conv1d({0}, {1}, {2}{3})", in_, out_, kernel_, text(options_));
}

Tensor Conv1d::forward(const Tensor &x) {
  if (std::string mistake = mistakeIn(in_, out_, kernel_, options_); !mistake.empty())
    return x.graph()->fail(describe() + " " + mistake);
  const int64_t each = in_ / options_.groups, fanIn = each * kernel_;
  Tensor weight = parameter(x, "weight", {out_, each, kernel_},
                            options_.weight.value_or(Initializer::kaimingUniform(fanIn)));
  Tensor y = conv1d(x, weight, options_.stride, {options_.padding, options_.padding}, options_.dilation,
                    options_.groups);
  return options_.bias ? plusBias(y, parameter(x, "bias", {out_}, uniformBy(fanIn))) : y;
}

std::string ConvTranspose2d::describe() const {
  return llvm::formatv("ConvTranspose2d({0}, {1}, {2}{3}{4})", in_, out_, kernel_, text(options_),
                       unless("output_padding", outputPadding_, 0));
}

Tensor ConvTranspose2d::forward(const Tensor &x) {
  if (std::string mistake = mistakeIn(in_, out_, kernel_, options_); !mistake.empty())
    return x.graph()->fail(describe() + " " + mistake);
  const int64_t each = out_ / options_.groups, fanIn = each * kernel_ * kernel_;
  Tensor weight = parameter(x, "weight", {in_, each, kernel_, kernel_},
                            options_.weight.value_or(Initializer::kaimingUniform(fanIn)));
  Tensor y = convTranspose2d(x, weight, toOptions(options_), {outputPadding_, outputPadding_});
  return options_.bias ? plusBias(y, parameter(x, "bias", {out_}, uniformBy(fanIn))) : y;
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

std::string MaxPool2d::describe() const { return "MaxPool2d(" + text(window_, options_) + ")"; }

Tensor MaxPool2d::forward(const Tensor &x) {
  return maxPool2d(x, {window_, window_}, poolOptions(x, window_, options_)).values;
}

std::string AvgPool2d::describe() const { return "AvgPool2d(" + text(window_, options_) + ")"; }

Tensor AvgPool2d::forward(const Tensor &x) {
  // PyTorch counts padding that was asked for, but not what ceil_mode reaches beyond it.
  if (options_.ceilMode && options_.countIncludePad && options_.padding > 0)
    return x.graph()->fail(describe() + ": ceil_mode with padding needs count_include_pad=false");
  const bool countIncludePad = options_.countIncludePad && !options_.ceilMode;
  return avgPool2d(x, {window_, window_}, poolOptions(x, window_, options_), countIncludePad);
}

std::string AdaptiveAvgPool2d::describe() const {
  return llvm::formatv("AdaptiveAvgPool2d({0}, {1})", rows_, columns_);
}

Tensor AdaptiveAvgPool2d::forward(const Tensor &x) {
  const Shape image = x.shape();
  if (image.size() != 4 || rows_ < 1 || columns_ < 1 || image[2] % rows_ != 0 || image[3] % columns_ != 0)
    return x.graph()->fail(llvm::formatv("{0} takes [?, channels, n · {1}, n · {2}], got {3}", describe(),
                                         rows_, columns_, toString(image)));
  if (rows_ == 1 && columns_ == 1)
    return reshape(mean(x, {2, 3}), {image[0], image[1], 1, 1});
  Pair window = {image[2] / rows_, image[3] / columns_};
  return avgPool2d(x, window, {.stride = window});
}

} // namespace gpuc::nn
