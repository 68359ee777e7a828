//===- Layers.h - The layers that models are made of ------------------------===//
#pragma once

#include "frontend/builder/Lora.h"

namespace gpuc::nn {

/// y = x · weightᵀ + bias, x [batch, …, in], y [batch, …, out]. Parameters as PyTorch's: `weight` [out, in],
/// kaiming-uniform with a = √5, and `bias` [out], uniform; both come out as uniform in ±1/√in.
class Linear : public Layer {
public:
  Linear(int64_t in, int64_t out, bool bias = true) : in_(in), out_(out), bias_(bias) {}
  std::string describe() const override;
  bool addAdapter(const LoraOptions &options) override;

  /// Outputs number first to last - 1 alone.
  Tensor outputs(const Tensor &x, int64_t first, int64_t last);

  /// Instead of PyTorch's defaults.
  Linear &&initialized(Initializer weight, Initializer bias = Initializer::zeros()) && {
    weightInitializer_ = std::move(weight);
    biasInitializer_ = std::move(bias);
    return std::move(*this);
  }

protected:
  Tensor forward(const Tensor &x) override;

private:
  Tensor product(const Tensor &x, int64_t first, int64_t last);

  int64_t in_, out_;
  bool bias_;
  std::optional<Initializer> weightInitializer_, biasInitializer_;
  std::optional<LoraAdapter> lora_;
};

class ReLU : public Layer {
public:
  std::string describe() const override { return "ReLU"; }

protected:
  Tensor forward(const Tensor &x) override { return relu(x); }
};

class LeakyReLU : public Layer {
public:
  explicit LeakyReLU(double slope = 0.01) : slope_(slope) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override { return leakyRelu(x, slope_); }

private:
  double slope_;
};

class GELU : public Layer {
public:
  /// `approximate`: by tanh, as PyTorch's GELU(approximate="tanh").
  explicit GELU(bool approximate = false) : approximate_(approximate) {}
  std::string describe() const override { return approximate_ ? "GELU(tanh)" : "GELU"; }

protected:
  Tensor forward(const Tensor &x) override { return gelu(x, approximate_); }

private:
  bool approximate_;
};

class SiLU : public Layer {
public:
  std::string describe() const override { return "SiLU"; }

protected:
  Tensor forward(const Tensor &x) override { return silu(x); }
};

class Tanh : public Layer {
public:
  std::string describe() const override { return "Tanh"; }

protected:
  Tensor forward(const Tensor &x) override { return tanh(x); }
};

class Sigmoid : public Layer {
public:
  std::string describe() const override { return "Sigmoid"; }

protected:
  Tensor forward(const Tensor &x) override { return sigmoid(x); }
};

/// Zeroes elements with probability p in [0, 1) while training; the identity otherwise.
class Dropout : public Layer {
public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  std::string describe() const override;

protected:
  Tensor forward(const Tensor &x) override { return dropout(x, p_); }

private:
  double p_;
};

/// [batch, …] to [batch, n].
class Flatten : public Layer {
public:
  std::string describe() const override { return "Flatten"; }

protected:
  Tensor forward(const Tensor &x) override { return flatten(x); }
};

} // namespace gpuc::nn
