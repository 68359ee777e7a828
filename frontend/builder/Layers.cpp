//===- Layers.cpp - The layers that models are made of ----------------------===//

#include "frontend/builder/Layers.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace gpuc::nn {

std::string Linear::describe() const {
  return llvm::formatv("Linear({0}, {1}{2})", in_, out_, bias_ ? "" : ", bias=false");
}

LeakyReLU::LeakyReLU(double slope)
    : FunctionLayer("LeakyReLU(" + detail::numberText(slope) + ")",
                    [=](const Tensor &x) { return leakyRelu(x, slope); }) {}

GELU::GELU(bool approximate)
    : FunctionLayer(approximate ? "GELU(tanh)" : "GELU",
                    [=](const Tensor &x) { return gelu(x, approximate); }) {}

Dropout::Dropout(double p)
    : FunctionLayer("Dropout(" + detail::numberText(p) + ")",
                    [=](const Tensor &x) { return dropout(x, p); }) {}

Flatten::Flatten() : FunctionLayer("Flatten", [](const Tensor &x) { return flatten(x); }) {}

Tensor Linear::forward(const Tensor &x) {
  Tensor y = product(x, 0, out_);
  return lora_ && y.valid() ? y + (*lora_)(x, 0, out_) : y;
}

Tensor Linear::outputs(const Tensor &x, int64_t first, int64_t last) {
  return call(x, [&] { return product(x, first, last); });
}

/// The given outputs, without what an adapter adds.
Tensor Linear::product(const Tensor &x, int64_t first, int64_t last) {
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
  const bool all = first == 0 && last == out_;
  auto wanted = [&](const Tensor &of) { return all ? of : slice(of, 0, first, last); };
  Tensor y = matmul(x, wanted(weight), /*transposeRhs=*/true); // (batch, …, last - first)
  if (!bias_)
    return y;
  const double bound = 1 / std::sqrt(static_cast<double>(in_));
  return y + wanted(parameter(x, "bias", {out_}, biasInitializer_.value_or(Initializer::uniform(bound))));
}

bool Linear::addAdapter(const LoraOptions &options) {
  lora_.emplace(options, add("lora_A", Linear(in_, options.rank, /*bias=*/false)),
                add("lora_B", Linear(options.rank, out_, /*bias=*/false).initialized(Initializer::zeros())));
  return true;
}

} // namespace gpuc::nn
