//===- Entries.cpp - Functions that are entries of a plan -------------------===//

#include "passes/base/Entries.h"

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

using namespace mlir;

bool isExpanded(ModuleOp module) {
  return module.getOps<ir::RecipeOp>().empty() && module.lookupSymbol("init");
}

bool isSetBySession(StringRef variable, StringRef kind) {
  return variable == "seed" || (kind == "counter" && (variable == "rank" || variable == "world_size"));
}

std::string argumentName(func::FuncOp function, unsigned index) {
  if (auto name = function.getArgAttrOfType<StringAttr>(index, kNameAttr))
    return name.str();
  return "arg" + std::to_string(index);
}

BlockArgument argumentOfRole(func::FuncOp function, StringRef role) {
  for (BlockArgument argument : function.getArguments())
    if (auto given = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kRoleAttr))
      if (given.getValue() == role)
        return argument;
  return {};
}

} // namespace gpuc
