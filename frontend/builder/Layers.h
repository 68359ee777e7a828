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

struct ReLU : FunctionLayer {
  ReLU() : FunctionLayer("ReLU", relu) {}
};

struct LeakyReLU : FunctionLayer {
  explicit LeakyReLU(double slope = 0.01);
};

struct GELU : FunctionLayer {
  /// `approximate`: by tanh, as PyTorch's GELU(approximate="tanh").
  explicit GELU(bool approximate = false);
};

struct SiLU : FunctionLayer {
  SiLU() : FunctionLayer("SiLU", silu) {}
};

struct Tanh : FunctionLayer {
  Tanh() : FunctionLayer("Tanh", tanh) {}
};

struct Sigmoid : FunctionLayer {
  Sigmoid() : FunctionLayer("Sigmoid", sigmoid) {}
};

/// Zeroes elements with probability p in [0, 1) while training; the identity otherwise.
struct Dropout : FunctionLayer {
  explicit Dropout(double p = 0.5);
};

/// [batch, …] to [batch, n].
struct Flatten : FunctionLayer {
  Flatten();
};

} // namespace gpuc::nn
