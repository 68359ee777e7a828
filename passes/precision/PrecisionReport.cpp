//===- PrecisionReport.cpp - What was computed in which precision, and why --===//

#include "passes/precision/PrecisionReport.h"

#include "passes/base/Locations.h"
#include "passes/base/TextRows.h"

namespace gpuc {

using namespace mlir;

static constexpr StringLiteral kFields[] = {"op", "layer", "loc", "type", "why"};

PrecisionEntry PrecisionEntry::of(Operation *op, Type type, StringRef why) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return {op->getName().stripDialect().str(), layerName(op->getLoc()), filePlace(op->getLoc()), name,
          why.str()};
}

Attribute toAttribute(ArrayRef<PrecisionEntry> entries, MLIRContext *context) {
  Builder builder(context);
  SmallVector<Attribute> rows;
  for (const PrecisionEntry &entry : entries)
    rows.push_back(builder.getStrArrayAttr({entry.op, entry.layer, entry.loc, entry.type, entry.why}));
  return builder.getArrayAttr(rows);
}

llvm::json::Array precisionOf(ModuleOp module) { return objectsOf(module, kPrecisionAttr, kFields); }

} // namespace gpuc
