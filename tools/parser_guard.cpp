// In a tool that is linked with this, whatever of MLIR reads a module's text, be it a file, stdin or what an
// editor has open, looks first whether the parser can be given it. MLIR's own mains have no place for that:
// they call this function in libMLIR.so, and find the one of the executable.

#include <dlfcn.h>

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "passes/ModuleText.h"

mlir::LogicalResult mlir::parseAsmSourceFile(const llvm::SourceMgr& sources, Block* block,
                                             const ParserConfig& config, AsmParserState* state,
                                             AsmParserCodeCompleteContext* completion) {
  const llvm::MemoryBuffer& text = *sources.getMemoryBuffer(sources.getMainFileID());
  if (auto fault = gpuc::findTextFault({text.getBufferStart(), text.getBufferSize()}))
    return emitError(
        FileLineColLoc::get(config.getContext(), text.getBufferIdentifier(), fault->line, fault->column),
        fault->what);

  static const auto parse = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&parseAsmSourceFile), &own);
    return reinterpret_cast<decltype(&parseAsmSourceFile)>(dlsym(RTLD_NEXT, own.dli_sname));
  }();
  return parse(sources, block, config, state, completion);
}
