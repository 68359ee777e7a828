//===- Pipelines.cpp - The way of a model through the passes ----------------===//

#include "passes/Passes.h"

#include "mlir/Transforms/Passes.h"

namespace gpuc {

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

void registerAllPasses() {
  registerGpucPasses();
  mlir::registerTransformsPasses();
}

} // namespace gpuc
