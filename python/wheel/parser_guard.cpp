// tools/parser_guard.cpp where MLIR is linked as archives: the linker's --wrap gives who calls its parser
// this one, which calls it.

#include "mlir/AsmParser/AsmParser.h"
#include "passes/SourceText.h"

#define GPUC_PARSE_ASM_SOURCE_FILE                                                                           \
  "_ZN4mlir18parseAsmSourceFileERKN4llvm9SourceMgrEPNS_5BlockERKNS_12ParserConfigEPNS_14AsmParserStateE"     \
  "PNS_28AsmParserCodeCompleteContextE"

mlir::LogicalResult
parse(const llvm::SourceMgr &sources, mlir::Block *block, const mlir::ParserConfig &config,
      mlir::AsmParserState *state,
      mlir::AsmParserCodeCompleteContext *completion) asm("__real_" GPUC_PARSE_ASM_SOURCE_FILE);

mlir::LogicalResult
parseIfChecked(const llvm::SourceMgr &sources, mlir::Block *block, const mlir::ParserConfig &config,
               mlir::AsmParserState *state,
               mlir::AsmParserCodeCompleteContext *completion) asm("__wrap_" GPUC_PARSE_ASM_SOURCE_FILE);

mlir::LogicalResult parseIfChecked(const llvm::SourceMgr &sources, mlir::Block *block,
                                   const mlir::ParserConfig &config, mlir::AsmParserState *state,
                                   mlir::AsmParserCodeCompleteContext *completion) {
  if (mlir::failed(gpuc::checkSourceText(sources, config.getContext())))
    return mlir::failure();
  return parse(sources, block, config, state, completion);
}
