//===- VariableOps.cpp - Variables, and how ops refer to them ---------------===//

#include "dialects/gpuc/TypeChecks.h"
#include "dialects/gpuc/ops/SymbolChecks.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// gpuc.variable
//===----------------------------------------------------------------------===//

static constexpr StringRef kinds[] = {"parameter", "statistic", "optimizer", "counter"};

LogicalResult VariableOp::verify() {
  if (getSymName().empty())
    return emitOpError() << "has no name [variable_C3]";
  if (getSymName() == "__metadata__" || !llvm::json::isUTF8(getSymName()))
    return emitOpError() << "cannot be named " << getSymNameAttr()
                         << ", a name that no safetensors file can hold: rename it [variable_C3]";
  if (!llvm::is_contained(kinds, getKind()))
    return emitOpError() << "kind must be one of " << llvm::join(ArrayRef<StringRef>(kinds), ", ")
                         << ", but is " << getKind() << " [variable_C1]";
  if (!cast<RankedTensorType>(getType()).hasStaticShape())
    return emitOpError() << "'" << getSymName() << "' must have a static shape, but is " << getType()
                         << " [variable_C2]";
  if (ArrayAttr owners = getOwnersAttr()) {
    const auto ranks = static_cast<int64_t>(getShards().value_or(0));
    if (!getShardOf() && !owners.empty() && static_cast<int64_t>(owners.size()) <= ranks)
      return success();
    return emitOpError() << "'" << getSymName() << "' has " << owners.size() << " owners among " << ranks
                         << " ranks" << (getShardOf() ? ", and is a share" : "") << " [variable_C5]";
  }
  if (getShardOf().has_value() != getShards().has_value() || getShards().value_or(1) < 1 ||
      llvm::any_of(getShardOf().value_or(ArrayRef<int64_t>()), [](int64_t extent) { return extent < 0; }) ||
      (getShards() && shareOf(getWholeType(), *getShards()) != getType()))
    return emitOpError() << "'" << getSymName() << "' of " << getType()
                         << " is no share of what shard_of and shards say"
                         << " [variable_C4]";
  return success();
}

StringRef VariableOp::getFirstName() {
  return getOwners() ? cast<StringAttr>(getOwnersAttr()[0]).getValue() : getSymName();
}

RankedTensorType VariableOp::getWholeType() {
  auto type = cast<RankedTensorType>(getType());
  return getShardOf() ? type.clone(*getShardOf()) : type;
}

//===----------------------------------------------------------------------===//
// gpuc.read, gpuc.assign
//===----------------------------------------------------------------------===//

FailureOr<VariableOp> findVariable(Operation *op, FlatSymbolRefAttr name, StringRef label,
                                   SymbolTableCollection &symbols) {
  Operation *found = symbols.lookupNearestSymbolFrom(op, name);
  if (auto variable = dyn_cast_or_null<VariableOp>(found))
    return variable;
  InFlightDiagnostic error = op->emitOpError() << "variable '" << name.getValue() << "' is not declared";
  suggestSymbol<VariableOp>(error, op, name.getValue());
  error << " [" << label << "]";
  return failure();
}

/// The named variable is declared with the type of `value`.
static LogicalResult checkVariable(Operation *op, FlatSymbolRefAttr name, Type type, StringRef label,
                                   SymbolTableCollection &symbols) {
  FailureOr<VariableOp> variable = findVariable(op, name, (label + "_C1").str(), symbols);
  if (failed(variable))
    return failure();
  if (variable->getType() == type)
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << "variable '" << name.getValue() << "' is declared as " << variable->getType()
                             << ", but used as " << type << " [" << label << "_C2]";
  error.attachNote(variable->getLoc()) << "declared here";
  return error;
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkVariable(*this, getVariableAttr(), getType(), "read", symbols);
}

/// The last assignment of a block looks at all of them, so that many cost no more than few.
static LogicalResult checkAssignedOnce(AssignOp assign) {
  for (Operation *next = assign->getNextNode(); next; next = next->getNextNode())
    if (isa<AssignOp>(next))
      return success();
  llvm::DenseMap<StringRef, AssignOp> first;
  for (auto other : assign->getBlock()->getOps<AssignOp>()) {
    auto [known, isNew] = first.try_emplace(other.getVariable(), other);
    if (isNew)
      continue;
    InFlightDiagnostic error = other.emitOpError()
                               << "variable '" << other.getVariable() << "' is assigned twice [assign_C3]";
    error.attachNote(known->second.getLoc()) << "first assigned here";
    return error;
  }
  return success();
}

LogicalResult AssignOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(checkVariable(*this, getVariableAttr(), getValue().getType(), "assign", symbols)))
    return failure();
  return checkAssignedOnce(*this);
}

} // namespace gpuc::ir
