//===- Lora.cpp - Fine-tuning by low-rank adapters --------------------------===//

#include "frontend/builder/Graph.h"
#include "frontend/builder/Layers.h"

#include "llvm/Support/FormatVariadic.h"

#include <vector>

namespace gpuc::nn {

int64_t addLora(Module &net, const LoraOptions &options) {
  std::vector<Module *> modules; // first all of them: adapters are made of Linear too, and get none
  net.visit([&](Module &module) { modules.push_back(&module); });
  net.requiresGrad(false);
  int64_t adapters = 0;
  for (Module *module : modules) {
    const bool adapted = module->addAdapter(options);
    module->lacksAdapter(!adapted);
    adapters += adapted;
  }
  return adapters;
}

LoraAdapter::LoraAdapter(const LoraOptions &options, Linear &a, Linear &b)
    : options_(options), a_(&a), b_(&b) {
  a.requiresGrad(true);
  b.requiresGrad(true);
}

Tensor LoraAdapter::operator()(const Tensor &x, int64_t first, int64_t last) {
  if (options_.rank < 1)
    return x.graph()->fail(llvm::formatv("an adapter of rank {0}; it is at least 1", options_.rank));
  Tensor seen = options_.dropout > 0 ? dropout(x, options_.dropout) : x;
  return b_->outputs((*a_)(seen), first, last) * (options_.alpha / static_cast<double>(options_.rank));
}

} // namespace gpuc::nn
