//===- CompileHostKernels.cpp - Blocks in, shared object out ----------------===//
//
// Most kernels of a deep model are equal to others: layers repeat. Those of equal bodies share their code,
// and so do those that differ in numbers alone (emitHostKernel's parameters), such as the updates of weights
// of different sizes.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/HostEntries.h"
#include "passes/codegen/HostKernel.h"
#include "passes/codegen/HostObjects.h"
#include "passes/codegen/KernelText.h"

using namespace mlir;

namespace gpuc {

using namespace codegen;

static FailureOr<HostCode> fail(Location location, const Twine &message) {
  emitError(location) << message;
  return failure();
}

FailureOr<HostCode> compileHostKernels(ArrayRef<KernelSource> kernels, const HostTarget &target,
                                       const CodegenOptions &options) {
  HostCode code;
  if (kernels.empty())
    return code;
  HostObjects objects(target, options);
  HostEntries entries;
  llvm::StringMap<std::string> symbolOfBody;
  for (const KernelSource &kernel : kernels) {
    if (failed(checkKernel(*kernel.body)))
      return fail(kernel.location, "kernel '" + kernel.symbol +
                                       "' holds ops that cannot be one kernel: split the fused region");
    auto [known, isNew] = symbolOfBody.try_emplace(textOfBody(*kernel.body));
    std::string &symbol = known->second;
    if (isNew) {
      OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(objects.context()));
      std::vector<int64_t> parameters = emitHostKernel(*module, "kernel", *kernel.body, target);
      symbol = objects.add(std::move(module), "kernel");
      if (!parameters.empty())
        symbol = entries.add(symbol, parameters);
    }
    code.symbols.push_back(symbol);
  }
  if (!entries.empty())
    objects.add(entries.emit(objects.context()));

  std::string error;
  FailureOr<std::vector<std::string>> compiled = objects.finish(error);
  if (failed(compiled))
    return fail(kernels.front().location, error);
  FailureOr<std::string> shared = linkSharedObject(*compiled, error);
  if (failed(shared))
    return fail(kernels.front().location, error);
  code.object = std::move(*shared);
  return code;
}

} // namespace gpuc
