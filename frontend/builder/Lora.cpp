//===- Lora.cpp - Fine-tuning by low-rank adapters --------------------------===//

#include "frontend/builder/Lora.h"

#include <vector>

namespace gpuc::nn {

int64_t addLora(Module &net, const LoraOptions &options) {
  std::vector<Module *> modules; // first all of them: adapters are made of Linear too, and get none
  net.visit([&](Module &module) { modules.push_back(&module); });
  net.requiresGrad(false);
  int64_t adapters = 0;
  for (Module *module : modules)
    adapters += module->addAdapter(options);
  return adapters;
}

} // namespace gpuc::nn
