//===- Embedding.h - Tokens and places as vectors ---------------------------===//
#pragma once

#include "frontend/builder/Module.h"

namespace gpuc::nn {

/// A row of a table for each token: ids [batch, …] (i32 or i64 in [0, count)) to [batch, …, width]. The
/// parameter is PyTorch's `weight` [count, width], normal with deviation 1.
class Embedding : public Layer {
public:
  Embedding(int64_t count, int64_t width, Initializer initializer = Initializer::normal(0, 1))
      : count_(count), width_(width), initializer_(std::move(initializer)) {}
  std::string describe() const override;

  /// The table itself, for a model whose output layer shares it.
  Tensor table(const Tensor &user);

protected:
  Tensor forward(const Tensor &ids) override;

private:
  int64_t count_, width_;
  Initializer initializer_;
};

/// Adds sin(t / 10000^(2i/width)) to element 2i of the vector at place t, and the cosine to element 2i + 1
/// [Vaswani et al. 2017, section 3.5]: x [batch, length, width], width even. No parameters. Dropout with
/// probability p follows, as in PyTorch's tutorial.
class PositionalEncoding : public Layer {
public:
  explicit PositionalEncoding(double p = 0.1) : p_(p) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override;

private:
  double p_;
};

} // namespace gpuc::nn
