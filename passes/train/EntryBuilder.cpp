//===- EntryBuilder.cpp - Functions whose arguments and results have names ---===//

#include "passes/train/EntryBuilder.h"

#include "passes/base/Entries.h"
#include "passes/base/Inline.h"

namespace gpuc {

using namespace mlir;

static constexpr llvm::StringLiteral kRange = "gpuc.range";

EntryBuilder::EntryBuilder(ModuleOp module, StringRef name) : builder_(module.getBodyRegion()) {
  builder_.setInsertionPointToEnd(module.getBody());
  function_ = func::FuncOp::create(builder_, module.getLoc(), name, builder_.getFunctionType({}, {}));
  builder_.setInsertionPointToStart(function_.addEntryBlock());
}

FailureOr<Value> EntryBuilder::argument(func::FuncOp callee, unsigned index) {
  std::string name = argumentName(callee, index);
  Type type = callee.getArgumentTypes()[index];
  for (unsigned known = 0; known < function_.getNumArguments(); ++known) {
    if (argumentName(function_, known) != name)
      continue;
    if (function_.getArgumentTypes()[known] != type)
      return callee.emitOpError("takes '")
             << name << "' as " << type << ", while another function of the recipe takes it as "
             << function_.getArgumentTypes()[known];
    if (failed(mergeRange(callee, index, known)))
      return failure();
    return Value(function_.getArgument(known));
  }
  NamedAttrList attributes(callee.getArgAttrDict(index));
  attributes.set(kNameAttr, builder_.getStringAttr(name));
  unsigned end = function_.getNumArguments();
  if (failed(function_.insertArgument(end, type, attributes.getDictionary(builder_.getContext()),
                                      callee.getArgument(index).getLoc())))
    return failure();
  return Value(function_.getArgument(end));
}

/// What one function says of the range of an argument holds for all that take it.
LogicalResult EntryBuilder::mergeRange(func::FuncOp callee, unsigned index, unsigned known) {
  Attribute given = callee.getArgAttr(index, kRange), before = function_.getArgAttr(known, kRange);
  if (given && before && given != before)
    return callee.emitOpError("takes '")
           << argumentName(callee, index) << "' with gpuc.range = " << given
           << ", while another function of the recipe takes it with " << before << ": give both the same";
  if (given)
    function_.setArgAttr(known, kRange, given);
  return success();
}

FailureOr<SmallVector<Value>> EntryBuilder::append(func::FuncOp callee) {
  SmallVector<Value> arguments;
  for (unsigned index = 0; index < callee.getNumArguments(); ++index) {
    FailureOr<Value> given = argument(callee, index);
    if (failed(given))
      return failure();
    arguments.push_back(*given);
  }
  return cloneBody(builder_, callee, arguments);
}

void EntryBuilder::addResult(StringRef name, Value value) { results_.emplace_back(name.str(), value); }

func::FuncOp EntryBuilder::finish() {
  SmallVector<Value> values;
  for (auto &[name, value] : results_)
    values.push_back(value);
  func::ReturnOp::create(builder_, function_.getLoc(), values);
  function_.setType(builder_.getFunctionType(function_.getArgumentTypes(), TypeRange(ValueRange(values))));
  for (auto [index, result] : llvm::enumerate(results_))
    function_.setResultAttr(index, kNameAttr, builder_.getStringAttr(result.first));
  return function_;
}

} // namespace gpuc
