//===- LayoutReport.cpp - Which layout and extents products run in, and why -===//

#include "passes/layout/LayoutReport.h"

#include "passes/base/Locations.h"
#include "passes/base/TextRows.h"

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

llvm::json::Array layoutsOf(ModuleOp module) { return objectsOf(module, kLayoutAttr, kFields); }

} // namespace gpuc
