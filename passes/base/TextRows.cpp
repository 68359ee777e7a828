//===- TextRows.cpp - Tables of texts, on their way to the report -------------===//

#include "passes/base/TextRows.h"

namespace gpuc {

using namespace mlir;

llvm::json::Array objectsOf(ModuleOp module, StringRef name, ArrayRef<StringLiteral> fields) {
  llvm::json::Array result;
  auto rows = module->getAttrOfType<ArrayAttr>(name);
  for (Attribute row : rows ? rows.getValue() : ArrayRef<Attribute>()) {
    auto texts = dyn_cast<ArrayAttr>(row);
    if (!texts || texts.size() != fields.size())
      continue;
    llvm::json::Object object;
    for (auto [field, text] : llvm::zip_equal(fields, texts))
      if (auto string = dyn_cast<StringAttr>(text))
        object[field] = string.getValue();
    result.push_back(std::move(object));
  }
  return result;
}

} // namespace gpuc
