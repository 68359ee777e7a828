//===- gpuc-opt.cpp - Runs passes over .mlir, one at a time or many ---------===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/OptionHelp.h"
#include "passes/Pipelines.h"

int main(int argc, char** argv) {
  gpuc::hideOptionsOfLibraries();
  mlir::DialectRegistry registry;
  gpuc::registerAllDialects(registry);
  gpuc::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "gpuc: a compiler for training neural networks\n", registry));
}
