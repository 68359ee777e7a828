//===- Decisions.cpp - What passes decide of single ops, for the report ------===//

#include "passes/base/Decisions.h"

#include "passes/base/Locations.h"

namespace gpuc {

using namespace mlir;

Attribute decisionOver(Operation *op, ArrayRef<StringRef> texts) {
  const std::string layer = layerName(op->getLoc()), place = filePlace(op->getLoc());
  SmallVector<StringRef> row = {op->getName().stripDialect(), layer, place};
  llvm::append_range(row, texts);
  return Builder(op->getContext()).getStrArrayAttr(row);
}

llvm::json::Array decisionsIn(ModuleOp module, StringRef name, ArrayRef<StringRef> fields) {
  SmallVector<StringRef> keys = {"op", "layer", "loc"};
  llvm::append_range(keys, fields);
  llvm::json::Array result;
  auto rows = module->getAttrOfType<ArrayAttr>(name);
  for (Attribute row : rows ? rows.getValue() : ArrayRef<Attribute>()) {
    auto texts = dyn_cast<ArrayAttr>(row);
    if (!texts || texts.size() != keys.size())
      continue;
    llvm::json::Object object;
    for (auto [key, text] : llvm::zip_equal(keys, texts))
      if (auto string = dyn_cast<StringAttr>(text))
        object[key] = string.getValue();
    result.push_back(std::move(object));
  }
  return result;
}

} // namespace gpuc
