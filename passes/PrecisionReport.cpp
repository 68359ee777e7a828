//===- PrecisionReport.cpp - What was computed in which precision, and why --===//

#include "passes/PrecisionReport.h"

#include "passes/Locations.h"

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

llvm::json::Array precisionOf(ModuleOp module) {
  llvm::json::Array result;
  auto rows = module->getAttrOfType<ArrayAttr>(kPrecisionAttr);
  for (Attribute row : rows ? rows.getValue() : ArrayRef<Attribute>()) {
    auto texts = dyn_cast<ArrayAttr>(row);
    if (!texts || texts.size() != std::size(kFields))
      continue; // not made by toAttribute
    llvm::json::Object entry;
    for (auto [field, text] : llvm::zip_equal(kFields, texts))
      if (auto string = dyn_cast<StringAttr>(text))
        entry[field] = string.getValue();
    result.push_back(std::move(entry));
  }
  return result;
}

} // namespace gpuc
