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

/// What layers of convolution share: parameters, and what is said of them.
class Convolution : public Layer {
public:
  std::string describe() const override;

protected:
  enum class Kind { rows, images, transposed };

  Convolution(Kind kind, int64_t in, int64_t out, int64_t kernel, Conv2dOptions options,
              int64_t outputPadding = 0)
      : kind_(kind), in_(in), out_(out), kernel_(kernel), options_(std::move(options)),
        outputPadding_(outputPadding) {}
  Tensor forward(const Tensor &x) override;

private:
  Tensor convolve(const Tensor &x, const Tensor &weight) const;

  Kind kind_;
  int64_t in_, out_, kernel_;
  Conv2dOptions options_;
  int64_t outputPadding_;
};

/// Parameters `weight` [out, in / groups, kernel, kernel] and `bias` [out], both uniform in ±1/√(in / groups
/// · kernel²).
struct Conv2d : Convolution {
  Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {})
      : Convolution(Kind::images, in, out, kernel, std::move(options)) {}
};

/// The same over sequences: x [batch, in, length], `weight` [out, in / groups, kernel].
struct Conv1d : Convolution {
  Conv1d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {})
      : Convolution(Kind::rows, in, out, kernel, std::move(options)) {}
};

/// The transpose of Conv2d(out, in, …): extents become (extent - 1) · stride - 2 · padding + dilation ·
/// (kernel - 1) + outputPadding + 1. Parameters `weight` [in, out / groups, kernel, kernel] and `bias` [out],
/// both uniform in ±1/√(out / groups · kernel²).
struct ConvTranspose2d : Convolution {
  ConvTranspose2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {},
                  int64_t outputPadding = 0)
      : Convolution(Kind::transposed, in, out, kernel, std::move(options), outputPadding) {}
};

/// Windows lie `stride` apart; 0, PyTorch's default: as far as they are wide.
struct Pool2dOptions {
  int64_t stride = 0, padding = 0;
  bool ceilMode = false;       ///< A last window that reaches beyond the edge counts too.
  bool countIncludePad = true; ///< AvgPool2d: padding counts in the mean.
};

struct MaxPool2d : FunctionLayer {
  explicit MaxPool2d(int64_t window, Pool2dOptions options = {});
};

struct AvgPool2d : FunctionLayer {
  explicit AvgPool2d(int64_t window, Pool2dOptions options = {});
};

/// Means over windows that cut the image into `rows` and `columns`, which must divide the image's.
struct AdaptiveAvgPool2d : FunctionLayer {
  AdaptiveAvgPool2d(int64_t rows, int64_t columns);
  explicit AdaptiveAvgPool2d(int64_t both) : AdaptiveAvgPool2d(both, both) {}
};

} // namespace gpuc::nn
