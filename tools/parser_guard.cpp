// In a tool that is linked with this, whatever of MLIR reads a module's text, be it a file, stdin or what an
// editor has open, looks first whether the parser can be given it. MLIR's own mains have no place for that:
// they call this function in libMLIR.so, and find the one of the executable. (Of archives the linker takes
// another in its place: python/wheel/parser_guard.cpp.)

#include <dlfcn.h>

#include "mlir/AsmParser/AsmParser.h"
#include "passes/SourceText.h"

mlir::LogicalResult mlir::parseAsmSourceFile(const llvm::SourceMgr& sources, Block* block,
                                             const ParserConfig& config, AsmParserState* state,
                                             AsmParserCodeCompleteContext* completion) {
  if (failed(gpuc::checkSourceText(sources, config.getContext()))) return failure();

  static const auto parse = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&parseAsmSourceFile), &own);
    return reinterpret_cast<decltype(&parseAsmSourceFile)>(dlsym(RTLD_NEXT, own.dli_sname));
  }();
  return parse(sources, block, config, state, completion);
}
