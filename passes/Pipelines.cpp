//===- Pipelines.cpp - The way of a model through the passes ----------------===//

#include "passes/Passes.h"

#include "mlir/Transforms/Passes.h"

namespace gpuc {

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

void registerAllPasses() {
  registerOverrideRecipePass();
  registerSpecializeBatchPass();
  registerMaskPaddingPass();
  registerAutodiffPass();
  registerExpandRecipePass();
  registerDecomposePass();
  mlir::registerTransformsPasses();
}

} // namespace gpuc
