//===- Norms.h - Normalisation, as functions and as layers -------------------===//
#pragma once

#include "frontend/builder/Module.h"

namespace gpuc::nn {

//===----------------------------------------------------------------------===//
// Functions. A weight or bias that is not valid() is left out.
//===----------------------------------------------------------------------===//

/// Mean 0 and variance 1 over `dim` and all dimensions after it, then times `weight` plus `bias`, which have
/// the shape of these dimensions.
Tensor layerNorm(const Tensor &x, int64_t dim = -1, const Tensor &weight = {}, const Tensor &bias = {},
                 double eps = 1e-5);

/// x / sqrt(mean(x²) + eps) over `dim` and all dimensions after it, then times `weight`.
Tensor rmsNorm(const Tensor &x, int64_t dim = -1, const Tensor &weight = {}, double eps = 1e-5);

/// x [batch, channels, …]: mean 0 and variance 1 over each of `groups` runs of channels, then times `weight`
/// plus `bias`, both [channels].
Tensor groupNorm(const Tensor &x, int64_t groups, const Tensor &weight = {}, const Tensor &bias = {},
                 double eps = 1e-5);

/// What batchNorm gives: y, and the running statistics as they are after this batch.
struct BatchNormalized {
  Tensor y;
  Tensor runningMean;
  Tensor runningVariance;
};

/// x [batch, channels, …]: mean 0 and variance 1 over each channel of the batch, then times `weight` plus
/// `bias`; outside of training by the running statistics. All are [channels].
BatchNormalized batchNorm(const Tensor &x, const Tensor &runningMean, const Tensor &runningVariance,
                          const Tensor &weight = {}, const Tensor &bias = {}, double momentum = 0.1,
                          double eps = 1e-5);

//===----------------------------------------------------------------------===//
// Layers, with PyTorch's parameters and names
//===----------------------------------------------------------------------===//

/// What they share: `weight`, which begins as ones, and `bias`, as zeros, both of one shape.
class Norm : public Layer {
public:
  std::string describe() const override;

protected:
  /// `text` begins the description: "GroupNorm(2, 8".
  Norm(std::string text, Shape shape, double eps, bool affine, bool bias = true)
      : shape_(std::move(shape)), eps_(eps), text_(std::move(text)), affine_(affine), bias_(bias) {}

  /// Not valid if there is none.
  Tensor weight(const Tensor &x);
  Tensor bias(const Tensor &x);

  Shape shape_;
  double eps_;

private:
  std::string text_;
  bool affine_, bias_;
};

/// layerNorm over the last dimensions, which are `shape`.
class LayerNorm : public Norm {
public:
  explicit LayerNorm(Shape shape, double eps = 1e-5, bool affine = true, bool bias = true)
      : Norm("LayerNorm(" + toString(shape), shape, eps, affine, bias) {}

protected:
  Tensor forward(const Tensor &x) override;
};

/// rmsNorm over the last dimensions, which are `shape`.
class RMSNorm : public Norm {
public:
  explicit RMSNorm(Shape shape, double eps = 1e-5, bool affine = true)
      : Norm("RMSNorm(" + toString(shape), shape, eps, affine) {}

protected:
  Tensor forward(const Tensor &x) override;
};

class GroupNorm : public Norm {
public:
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true)
      : Norm("GroupNorm(" + std::to_string(groups) + ", " + std::to_string(channels), {channels}, eps,
             affine),
        groups_(groups) {}

protected:
  Tensor forward(const Tensor &x) override;

private:
  int64_t groups_;
};

/// PyTorch's BatchNorm1d, BatchNorm2d and BatchNorm3d: x [batch, channels, …]. The statistics `running_mean`,
/// `running_var` and `num_batches_tracked` are changed by training alone.
class BatchNorm : public Norm {
public:
  explicit BatchNorm(int64_t channels, double eps = 1e-5, double momentum = 0.1, bool affine = true)
      : Norm("BatchNorm(" + std::to_string(channels), {channels}, eps, affine), momentum_(momentum) {}

protected:
  Tensor forward(const Tensor &x) override;

private:
  double momentum_;
};

} // namespace gpuc::nn
