//===- gpuc-opt.cpp - Runs passes over .mlir, one at a time or many ---------===//

#include "dialects/gpuc/GpucDialect.h"
#include "dialects/plan/PlanOps.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, gpuc::ir::GpucDialect, gpuc::plan::PlanDialect>();
  gpuc::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "gpuc: a compiler for training neural networks\n", registry));
}
