//===- LayoutReport.cpp - Which layout and extents products run in, and why -===//

#include "passes/LayoutReport.h"

#include "passes/Locations.h"

namespace gpuc {

using namespace mlir;

static constexpr StringLiteral kFields[] = {"op", "layer", "loc", "layout", "from", "to", "why"};

LayoutEntry LayoutEntry::of(Operation *op) {
  LayoutEntry entry;
  entry.op = op->getName().stripDialect().str();
  entry.layer = layerName(op->getLoc());
  entry.loc = filePlace(op->getLoc());
  return entry;
}

Attribute toAttribute(ArrayRef<LayoutEntry> entries, MLIRContext *context) {
  Builder builder(context);
  SmallVector<Attribute> rows;
  for (const LayoutEntry &entry : entries)
    rows.push_back(builder.getStrArrayAttr(
        {entry.op, entry.layer, entry.loc, entry.layout, entry.from, entry.to, entry.why}));
  return builder.getArrayAttr(rows);
}

llvm::json::Array layoutsOf(ModuleOp module) {
  llvm::json::Array result;
  auto rows = module->getAttrOfType<ArrayAttr>(kLayoutAttr);
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
