//===- gpuc-lsp-server.cpp - The language server for .mlir with gpuc's ops --===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "passes/OptionHelp.h"
#include "passes/Pipelines.h"

int main(int argc, char** argv) {
  gpuc::hideOptionsOfLibraries();
  mlir::DialectRegistry registry;
  gpuc::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
