//===- Classification.h - What models that classify images share ------===//
#pragma once

#include "frontend/builder/nn.h"

namespace gpuc::models {

/// Pixels 0 … 255 as numbers in [0, 1].
struct PixelsToUnit : nn::Layer {
  explicit PixelsToUnit(DataType floats) : floats(floats) {}
  std::string describe() const override { return "PixelsToUnit"; }
  nn::Tensor forward(const nn::Tensor &x) override { return x.to(floats) * (1.0 / 255); }

  DataType floats;
};

/// Loss and accuracy of a model whose predict returns logits [batch, classes]: cross-entropy with `labels`
/// (i32), label smoothing in [0, 1).
void classify(nn::ModelBuilder &model, int64_t classes, double smoothing = 0);

} // namespace gpuc::models
