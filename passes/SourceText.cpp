//===- SourceText.cpp - What MLIR's parser is about to read ----------------===//

#include "passes/SourceText.h"

#include "passes/ModuleText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/SourceMgr.h"

#include <algorithm>

namespace gpuc {

/// What the lexer begins with: the last text where that is a part of the first, as a module is of a file that
/// is split.
static std::string_view textToParse(const llvm::SourceMgr &sources) {
  const llvm::MemoryBuffer &file = *sources.getMemoryBuffer(sources.getMainFileID()),
                           &last = *sources.getMemoryBuffer(sources.getNumBuffers());
  const bool isPart =
      file.getBufferStart() <= last.getBufferStart() && last.getBufferEnd() <= file.getBufferEnd();
  return (isPart ? last : file).getBuffer();
}

mlir::LogicalResult checkSourceText(const llvm::SourceMgr &sources, mlir::MLIRContext *context) {
  const std::string_view text = textToParse(sources);
  const std::optional<TextFault> fault = findTextFault(text);
  if (!fault)
    return mlir::success();
  const llvm::MemoryBuffer &file = *sources.getMemoryBuffer(sources.getMainFileID());
  const auto linesBefore = static_cast<size_t>(std::count(file.getBufferStart(), text.data(), '\n'));
  return mlir::emitError(mlir::FileLineColLoc::get(context, file.getBufferIdentifier(),
                                                   linesBefore + fault->line, fault->column),
                         fault->what);
}

} // namespace gpuc
