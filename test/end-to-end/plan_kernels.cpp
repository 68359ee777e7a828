#include "test/end-to-end/plan_kernels.h"

#include "dialects/plan/PlanOps.h"
#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/StringSet.h"

#include <mutex>

namespace gpuc::test {

PlanKernels::PlanKernels(mlir::ModuleOp module, const Plan &plan) : plan_(plan) {
  std::vector<KernelSource> sources;
  llvm::StringSet<> symbols; // equal kernels share one
  uint32_t number = 0;
  for (auto kernel : module.getOps<plan::KernelOp>()) {
    std::string symbol = plan.root().kernels()->Get(number++)->symbol()->str();
    if (symbols.insert(symbol).second)
      sources.push_back({symbol, &kernel.getBody().front(), kernel.getLoc()});
  }
  module_ = std::make_unique<EmulatedModule>(sources);
}

void PlanKernels::define(FakeGpu &gpu) const {
  for (const fb::Kernel *kernel : *plan_.root().kernels()) {
    std::string symbol = kernel->symbol()->str();
    gpu.define(symbol, kernel->operands(),
               [this, symbol](void *const *operands, uint32_t grid, uint32_t block) {
                 static std::mutex emulation; // has one GPU at a time, whose threads are its globals
                 const std::lock_guard lock(emulation);
                 module_->run(symbol, grid, block, operands);
               });
  }
}

} // namespace gpuc::test
