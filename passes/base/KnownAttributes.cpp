//===- KnownAttributes.cpp - That a model's attributes are those that there are ----===//

#include "passes/base/KnownAttributes.h"

#include "dialects/gpuc/CountsRows.h"
#include "dialects/gpuc/GpucDialect.h"
#include "passes/base/Entries.h"
#include "runtime/base/flags.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

#include <string>
#include <vector>

using namespace mlir;

namespace gpuc {

using Names = std::vector<std::string>;

/// ", did you mean 'causal'? known are causal, scale".
static std::string cureFor(StringRef name, const Names &known) {
  if (known.empty())
    return ", which has none";
  const std::string near = similarName(name.str(), known);
  return (near.empty() ? ":" : ", did you mean '" + near + "'?") + " known are " + llvm::join(known, ", ");
}

/// What has a dialect's prefix is that dialect's, and a note for passes.
static LogicalResult checkOwn(Operation *op) {
  if (!isa_and_nonnull<ir::GpucDialect>(op->getDialect()))
    return success();
  Names known;
  for (StringAttr name : op->getRegisteredInfo()->getAttributeNames())
    known.push_back(name.str());
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (StringRef name = attribute.getName(); !name.contains('.'))
      return op->emitOpError() << "has no attribute '" << name << "'" << cureFor(name, known);
  return success();
}

/// Whether it is what its name needs. (gpuc-check-ranges looks at ranges.)
static bool isFit(NamedAttribute attribute) {
  return attribute.getName() == kNameAttr        ? isa<StringAttr>(attribute.getValue())
         : attribute.getName() == "gpuc.ignored" ? isa<IntegerAttr>(attribute.getValue())
                                                 : true;
}

/// Of an argument or a result of a function; null where nothing is said of it.
static LogicalResult checkPort(func::FuncOp function, DictionaryAttr attributes, const char *what,
                               const Names &known) {
  static const Names ofPasses{kRoleAttr.str(),    ir::kPartitionAttr.str(),
                              kHasRowsAttr.str(), kCountsOnceAttr.str(),
                              "gpuc.checks",      "gpuc.variable"};
  for (NamedAttribute attribute : attributes ? attributes.getValue() : ArrayRef<NamedAttribute>()) {
    const StringRef name = attribute.getName();
    if (!isFit(attribute))
      return function.emitOpError() << what << " of @" << function.getName() << " has " << name << " = "
                                    << attribute.getValue() << ": it is a "
                                    << (name == kNameAttr ? "text" : "number");
    if (name.starts_with("gpuc.") && !llvm::is_contained(known, name) && !llvm::is_contained(ofPasses, name))
      return function.emitOpError() << what << " of @" << function.getName() << " has '" << name
                                    << "', which gpuc does not know" << cureFor(name, known);
  }
  return success();
}

static LogicalResult checkPorts(func::FuncOp function) {
  static const Names ofArguments{"gpuc.range", kNameAttr.str(), "gpuc.ignored"}, ofResults{kNameAttr.str()};
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (failed(checkPort(function, function.getArgAttrDict(index), "an argument", ofArguments)))
      return failure();
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (failed(checkPort(function, function.getResultAttrDict(index), "a result", ofResults)))
      return failure();
  return success();
}

LogicalResult checkAttributeNames(ModuleOp model) {
  return success(!model
                      ->walk([](Operation *op) -> WalkResult {
                        if (auto function = dyn_cast<func::FuncOp>(op))
                          return checkPorts(function);
                        return checkOwn(op);
                      })
                      .wasInterrupted());
}

} // namespace gpuc
