//===- Layers.cpp - The layers that models are made of ----------------------===//

#include "frontend/builder/Layers.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace gpuc::nn {

std::string Linear::describe() const {
  return llvm::formatv("Linear({0}, {1}{2})", in_, out_, bias_ ? "" : ", bias=false");
}

std::string LeakyReLU::describe() const { return "LeakyReLU(" + detail::numberText(slope_) + ")"; }

std::string Dropout::describe() const { return "Dropout(" + detail::numberText(p_) + ")"; }

Tensor Linear::forward(const Tensor &x) {
  detail::Graph &graph = *x.graph();
  if (in_ < 1 || out_ < 1)
    return graph.fail(describe() + " needs at least one input and one output");
  if (x.dtype() != graph.floats)
    return graph.fail(llvm::formatv("{0} takes {1}, got {2}; convert with to()", describe(),
                                    nameOf(graph.floats), nameOf(x.dtype())));
  const Shape shape = x.shape();
  if (shape.size() < 2 || shape.back() != in_)
    return graph.fail(llvm::formatv("{0} takes [?, …, {1}], got {2}", describe(), in_, toString(shape)));

  Tensor weight = parameter(x, "weight", {out_, in_}, // (out, in)
                            weightInitializer_.value_or(Initializer::kaimingUniform(in_)));
  Tensor y = matmul(x, weight, /*transposeRhs=*/true); // (batch, …, out)
  if (bias_) {
    const double bound = 1 / std::sqrt(static_cast<double>(in_));
    y = y + parameter(x, "bias", {out_}, biasInitializer_.value_or(Initializer::uniform(bound)));
  }
  return lora_ ? adapted(x, y) : y;
}

bool Linear::addAdapter(const LoraOptions &options) {
  lora_ = options;
  loraA_ = &add("lora_A", Linear(in_, options.rank, /*bias=*/false));
  loraB_ = &add("lora_B", Linear(options.rank, out_, /*bias=*/false).initialized(Initializer::zeros()));
  loraA_->requiresGrad(true);
  loraB_->requiresGrad(true);
  return true;
}

/// y and what the adapter adds to it.
Tensor Linear::adapted(const Tensor &x, const Tensor &y) {
  if (lora_->rank < 1)
    return x.graph()->fail(llvm::formatv("an adapter of rank {0}; it is at least 1", lora_->rank));
  Tensor seen = lora_->dropout > 0 ? dropout(x, lora_->dropout) : x;
  return y + (*loraB_)((*loraA_)(seen)) * (lora_->alpha / static_cast<double>(lora_->rank));
}

} // namespace gpuc::nn
