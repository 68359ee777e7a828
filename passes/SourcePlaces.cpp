//===- SourcePlaces.cpp - Names and lines of a model's ops -------------------===//

#include "passes/SourcePlaces.h"

#include "passes/Compiler.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
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
  auto module = detail::constructContainerOpForParserIfNecessary<ModuleOp>(&parsed, context, whole);
  if (!module)
    return module;
  bool isModel = stageOf(*module) == Stage::model, located = false;
  module->walk([&](Operation *op) {
    const AsmParserState::OperationDefinition *definition = state.getOpDef(op);
    if (!definition)
      return;
    auto [line, column] = source.getLineAndColumn(definition->loc.Start);
    auto place = FileLineColLoc::get(file, line, column);
    located |= op->getLoc() != place;
    // What has no place at a later stage is of the compiler's own making.
    auto name = dyn_cast<NameLoc>(op->getLoc());
    if (isModel && name && isa<UnknownLoc>(name.getChildLoc()))
      op->setLoc(NameLoc::get(name.getName(), place));
  });
  if (!isModel && !located)
    emitWarning(UnknownLoc::get(context))
        << fileName
        << " is without locations: what is compiled from it names no layers and lines, and its report no "
        << "residuals; --emit writes them unless --no-locations is given, gpuc-opt with "
           "--mlir-print-debuginfo";
  return module;
}

} // namespace gpuc
