//===- gpuc-reduce.cpp - Shrinks a module that shows a defect ---------------===//

#include <cstdio>

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "passes/ModuleText.h"
#include "passes/OptionHelp.h"
#include "passes/Passes.h"
#include "passes/ReduceGraph.h"

int main(int argc, char** argv) {
  gpuc::hideOptionsOfLibraries();
  if (gpuc::Status status = gpuc::checkModuleFiles(argc, argv); !status.ok()) {
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
    return 1;
  }
  mlir::DialectRegistry registry;
  gpuc::registerAllDialects(registry);
  gpuc::registerAllPasses();
  gpuc::registerReduceGraphPass();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
