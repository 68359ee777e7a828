//===- TrainingDigest.cpp - A number for what is trained, and how ------------===//
//
// What is hashed is text: of the recipe's entries, and of what the loss calls and reads, in the order in
// which it is come to.
//
//===----------------------------------------------------------------------===//

#include "passes/recipe/TrainingDigest.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <limits>

namespace gpuc {

using namespace mlir;

/// Checkpoints hold batch and seed themselves; the others share the batch out.
static bool isOfTheUpdate(NamedAttribute entry) {
  static constexpr StringLiteral others[] = {"accuracy", "batch",         "accumulate", "emulate_ranks",
                                             "shard",    "data_parallel", "world_size", "seed"};
  const auto flag = dyn_cast<BoolAttr>(entry.getValue()); // what is false is as if it was not said
  return !llvm::is_contained(others, entry.getName()) && (!flag || flag.getValue());
}

static void print(llvm::raw_ostream &text, ir::VariableOp variable) {
  text << "variable " << variable.getSymName() << ' ' << variable.getType() << ' ' << variable.getKind()
       << (variable.getFrozen() ? " frozen\n" : "\n");
}

/// Numbers its values from 0, so that it does not hang on what else stands in the module.
static void print(llvm::raw_ostream &text, Operation *op) {
  OpPrintingFlags flags;
  flags.enableDebugInfo(false).printGenericOpForm().useLocalScope().elideLargeElementsAttrs(
      std::numeric_limits<int64_t>::max());
  op->print(text, flags);
  text << '\n';
}

/// With all that it names, and what that names.
static void printWithUses(llvm::raw_ostream &text, ModuleOp module, FlatSymbolRefAttr first) {
  llvm::SetVector<StringAttr> names;
  names.insert(first.getAttr());
  for (size_t index = 0; index < names.size(); ++index) {
    Operation *op = SymbolTable::lookupSymbolIn(module, names[index]);
    if (auto variable = dyn_cast_or_null<ir::VariableOp>(op)) {
      print(text, variable);
    } else if (op) {
      print(text, op);
      if (std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(op))
        for (SymbolTable::SymbolUse use : *uses)
          names.insert(use.getSymbolRef().getRootReference());
    }
  }
}

uint64_t digestOfTraining(ModuleOp module, ir::RecipeOp recipe) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (NamedAttribute entry : recipe->getAttrDictionary())
    if (isOfTheUpdate(entry))
      stream << entry.getName() << " = " << entry.getValue() << '\n';
  printWithUses(stream, module, recipe.getLossAttr());
  return std::max<uint64_t>(llvm::xxh3_64bits(text), 1);
}

} // namespace gpuc
