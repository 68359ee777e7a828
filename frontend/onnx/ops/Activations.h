//===- Activations.h - Activations of recurrent layers ----------------------===//
#pragma once

#include "frontend/onnx/Tensor.h"

#include <optional>

namespace gpuc::onnx {

/// f(x) with up to two numbers of its own; alpha and beta begin with ONNX's defaults.
struct Activation {
  Tensor (*formula)(const Tensor &x, double alpha, double beta);
  int parameters = 0; ///< How many of alpha, beta it has.
  double alpha = 0, beta = 0;

  Tensor operator()(const Tensor &x) const { return formula(x, alpha, beta); }
};

/// By the names that RNN, LSTM and GRU have for them, in any case; none if there is no such activation.
std::optional<Activation> activationNamed(const std::string &name);

/// min(max(x, low), high).
Tensor clamp(const Tensor &x, double low, double high);

} // namespace gpuc::onnx
