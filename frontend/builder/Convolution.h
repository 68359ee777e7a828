//===- Convolution.h - Layers of convolution and pooling --------------------===//
//
// Images are [batch, channels, height, width]. Names, layouts, defaults and initial values are PyTorch's.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/builder/Images.h"
#include "frontend/builder/Module.h"

#include <optional>

namespace gpuc::nn {

/// A kernel's numbers, the same for rows and columns.
struct Conv2dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  std::optional<Initializer> weight = {}; ///< Instead of the default.
};

/// Parameters `weight` [out, in / groups, kernel, kernel] and `bias` [out], both uniform in ±1/√(in / groups
/// · kernel²).
class Conv2d : public Layer {
public:
  Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {})
      : in_(in), out_(out), kernel_(kernel), options_(std::move(options)) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override;

private:
  int64_t in_, out_, kernel_;
  Conv2dOptions options_;
};

/// The same over sequences: x [batch, in, length], `weight` [out, in / groups, kernel].
class Conv1d : public Layer {
public:
  Conv1d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {})
      : in_(in), out_(out), kernel_(kernel), options_(std::move(options)) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override;

private:
  int64_t in_, out_, kernel_;
  Conv2dOptions options_;
};

/// The transpose of Conv2d(out, in, …): extents become (extent - 1) · stride - 2 · padding + dilation ·
/// (kernel - 1) + outputPadding + 1. Parameters `weight` [in, out / groups, kernel, kernel] and `bias` [out],
/// both uniform in ±1/√(out / groups · kernel²).
class ConvTranspose2d : public Layer {
public:
  ConvTranspose2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {},
                  int64_t outputPadding = 0)
      : in_(in), out_(out), kernel_(kernel), options_(std::move(options)), outputPadding_(outputPadding) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override;

private:
  int64_t in_, out_, kernel_;
  Conv2dOptions options_;
  int64_t outputPadding_;
};

/// Windows lie `stride` apart; 0, PyTorch's default: as far as they are wide.
struct Pool2dOptions {
  int64_t stride = 0, padding = 0;
  bool ceilMode = false;       ///< A last window that reaches beyond the edge counts too.
  bool countIncludePad = true; ///< AvgPool2d: padding counts in the mean.
};

class MaxPool2d : public Layer {
public:
  explicit MaxPool2d(int64_t window, Pool2dOptions options = {}) : window_(window), options_(options) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override;

private:
  int64_t window_;
  Pool2dOptions options_;
};

class AvgPool2d : public Layer {
public:
  explicit AvgPool2d(int64_t window, Pool2dOptions options = {}) : window_(window), options_(options) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override;

private:
  int64_t window_;
  Pool2dOptions options_;
};

/// Means over windows that cut the image into `rows` and `columns`, which must divide the image's.
class AdaptiveAvgPool2d : public Layer {
public:
  AdaptiveAvgPool2d(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}
  explicit AdaptiveAvgPool2d(int64_t both) : AdaptiveAvgPool2d(both, both) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override;

private:
  int64_t rows_, columns_;
};

} // namespace gpuc::nn
