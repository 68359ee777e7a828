// In a tool that is linked with this, whatever of MLIR reads a module's text, be it a file, stdin or what an
// editor has open, looks first whether the parser can be given it. MLIR's own mains have no place for that:
// they call this function in libMLIR.so, and find the one of the executable.

#include <dlfcn.h>

#include <algorithm>

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "passes/ModuleText.h"

namespace {

/// What MLIR's lexer begins with: the last text where that is a part of the first, as a module is of a file
/// that is split.
std::string_view textToParse(const llvm::SourceMgr& sources) {
  const llvm::MemoryBuffer &file = *sources.getMemoryBuffer(sources.getMainFileID()),
                           &last = *sources.getMemoryBuffer(sources.getNumBuffers());
  const bool isPart =
      file.getBufferStart() <= last.getBufferStart() && last.getBufferEnd() <= file.getBufferEnd();
  return (isPart ? last : file).getBuffer();
}

}  // namespace

mlir::LogicalResult mlir::parseAsmSourceFile(const llvm::SourceMgr& sources, Block* block,
                                             const ParserConfig& config, AsmParserState* state,
                                             AsmParserCodeCompleteContext* completion) {
  const std::string_view text = textToParse(sources);
  if (auto fault = gpuc::findTextFault(text)) {
    const llvm::MemoryBuffer& file = *sources.getMemoryBuffer(sources.getMainFileID());
    const auto linesBefore = static_cast<size_t>(std::count(file.getBufferStart(), text.data(), '\n'));
    return emitError(FileLineColLoc::get(config.getContext(), file.getBufferIdentifier(),
                                         linesBefore + fault->line, fault->column),
                     fault->what);
  }

  static const auto parse = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&parseAsmSourceFile), &own);
    return reinterpret_cast<decltype(&parseAsmSourceFile)>(dlsym(RTLD_NEXT, own.dli_sname));
  }();
  return parse(sources, block, config, state, completion);
}
