//===- SourcePlaces.cpp - Names and lines of a model's ops -------------------===//

#include "passes/SourcePlaces.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/SourceMgr.h"

namespace gpuc {

using namespace mlir;

OwningOpRef<ModuleOp> parseWithPlaces(const std::string &text, const std::string &fileName,
                                      MLIRContext *context) {
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, fileName), SMLoc());
  AsmParserState state;
  Block parsed;
  if (failed(parseAsmSourceFile(source, &parsed, ParserConfig(context), &state)))
    return nullptr;
  auto file = StringAttr::get(context, fileName);
  auto whole = FileLineColLoc::get(file, /*line=*/1, /*column=*/1);
  for (Operation &top : parsed)
    top.walk([&](Operation *op) {
      auto name = dyn_cast<NameLoc>(op->getLoc());
      const AsmParserState::OperationDefinition *place = state.getOpDef(op);
      if (!name || !isa<UnknownLoc>(name.getChildLoc()) || !place)
        return;
      auto [line, column] = source.getLineAndColumn(place->loc.Start);
      op->setLoc(NameLoc::get(name.getName(), FileLineColLoc::get(file, line, column)));
    });
  return detail::constructContainerOpForParserIfNecessary<ModuleOp>(&parsed, context, whole);
}

} // namespace gpuc
