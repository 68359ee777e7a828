//===- gpuc-reduce.cpp - Shrinks a module that shows a defect ---------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "passes/OptionHelp.h"
#include "passes/Pipelines.h"
#include "passes/ReduceGraph.h"
#include "runtime/base/output_files.h"
#include "runtime/base/tool_main.h"

/// The shrunken module may not take the place of the only copy of the whole one. `-o FILE` and the other
/// files as they stand on the command line, which MLIR takes apart by itself later.
static gpuc::Status checkOutput(int argc, char** argv) {
  std::vector<std::string> outputs, inputs;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if ((argument == "-o" || argument == "--o") && i + 1 < argc)
      outputs.push_back(argv[++i]);
    else if (argument.starts_with("-o=") || argument.starts_with("--o="))
      outputs.emplace_back(argument.substr(argument.find('=') + 1));
    else if (!argument.starts_with("-"))
      inputs.emplace_back(argument);
  }
  return gpuc::checkOutputsApart(outputs, inputs);
}

int main(int argc, char** argv) {
  if (gpuc::Status apart = checkOutput(argc, argv); !apart.ok()) return gpuc::exitStatus(apart);
  gpuc::hideOptionsOfLibraries();
  mlir::DialectRegistry registry;
  gpuc::registerAllDialects(registry);
  gpuc::registerAllPasses();
  gpuc::registerReduceGraphPass();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
