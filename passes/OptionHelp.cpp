//===- OptionHelp.cpp - What --help of MLIR's tools leaves out ---------------===//

#include "passes/OptionHelp.h"

#include "llvm/Support/CommandLine.h"

namespace gpuc {

void hideOptionsOfLibraries() {
  for (auto &[name, option] : llvm::cl::getRegisteredOptions()) {
    bool ofEveryTool = name == "color" || name == "version" || name.starts_with("help");
    if (!ofEveryTool && option->getOptionHiddenFlag() == llvm::cl::NotHidden)
      option->setHiddenFlag(llvm::cl::Hidden);
  }
}

} // namespace gpuc
