//===- TrainingOps.cpp - The gradient and the recipe ------------------------===//

#include "dialects/gpuc/SymbolChecks.h"
#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

FailureOr<func::FuncOp> findFunction(Operation *op, FlatSymbolRefAttr name, StringRef role, StringRef label,
                                     SymbolTableCollection &symbols) {
  if (auto function = dyn_cast_or_null<func::FuncOp>(symbols.lookupNearestSymbolFrom(op, name)))
    return function;
  InFlightDiagnostic error = op->emitOpError()
                             << role << " '" << name.getValue() << "' is not a function of the module";
  suggestSymbol<func::FuncOp>(error, op, name.getValue());
  error << " [" << label << "]";
  return failure();
}

//===----------------------------------------------------------------------===//
// gpuc.gradient
//===----------------------------------------------------------------------===//

/// The types that the op must return: the callee's results, then one for each thing derived by.
static FailureOr<SmallVector<Type>> gradientResults(GradientOp op, func::FuncOp callee,
                                                    SymbolTableCollection &symbols) {
  SmallVector<Type> types(callee.getResultTypes());
  for (int64_t number : op.getArguments().value_or(ArrayRef<int64_t>())) {
    if (number < 0 || number >= callee.getNumArguments())
      return op.emitOpError() << "argument number " << number << " does not exist: '" << callee.getSymName()
                              << "' has " << callee.getNumArguments() << " [gradient_C4]";
    types.push_back(callee.getArgumentTypes()[number]);
  }
  if (op.getVariables())
    for (auto name : op.getVariables()->getAsRange<FlatSymbolRefAttr>()) {
      FailureOr<VariableOp> variable = findVariable(op, name, "gradient_C7", symbols);
      if (failed(variable))
        return failure();
      types.push_back(variable->getType());
    }
  for (Type type : ArrayRef<Type>(types).drop_front(callee.getNumResults()))
    if (!isa<FloatType>(cast<RankedTensorType>(type).getElementType()))
      return op.emitOpError() << "there is no gradient by a tensor of integers: " << type << " [gradient_C5]";
  return types;
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<func::FuncOp> callee = findFunction(*this, getCalleeAttr(), "callee", "gradient_C1", symbols);
  if (failed(callee))
    return failure();
  if (callee->getArgumentTypes() != getInputs().getTypes())
    return emitOpError() << "inputs (" << getInputs().getTypes() << ") do not fit the arguments of '"
                         << getCallee() << "', (" << callee->getArgumentTypes() << ") [gradient_C2]";
  auto scalar =
      callee->getNumResults() ? dyn_cast<RankedTensorType>(callee->getResultTypes()[0]) : RankedTensorType();
  if (!scalar || scalar.getRank() != 0 || !isa<FloatType>(scalar.getElementType()))
    return emitOpError() << "the first result of '" << getCallee()
                         << "' must be a floating-point scalar, but it returns (" << callee->getResultTypes()
                         << ") [gradient_C3]";
  FailureOr<SmallVector<Type>> expected = gradientResults(*this, *callee, symbols);
  if (failed(expected))
    return failure();
  if (TypeRange(*expected) == getOutputs().getTypes())
    return success();
  return emitOpError() << "must return the results of '" << getCallee() << "' and then the gradients, ("
                       << *expected << "), but returns (" << getOutputs().getTypes() << ") [gradient_C6]";
}

//===----------------------------------------------------------------------===//
// gpuc.recipe { key = value, … }
//===----------------------------------------------------------------------===//

static ParseResult parseRecipeEntry(OpAsmParser &parser, RecipeOp::Properties &recipe) {
  StringRef key;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&key) || parser.parseEqual())
    return failure();
  auto parseOnce = [&](auto &slot, auto parse) -> ParseResult {
    if (slot)
      return parser.emitError(location) << "'" << key << "' is given twice";
    return parse(slot);
  };
  auto symbol = [&](FlatSymbolRefAttr &slot) { return parser.parseAttribute(slot); };
  auto integer = [&](IntegerAttr &slot) {
    return parser.parseAttribute(slot, parser.getBuilder().getI64Type());
  };
  auto spec = [&](SpecAttr &slot) -> ParseResult {
    FailureOr<SpecAttr> parsed = SpecAttr::parseBare(parser);
    slot = failed(parsed) ? SpecAttr() : *parsed;
    return success(succeeded(parsed));
  };
  if (key == "loss")
    return parseOnce(recipe.loss, symbol);
  if (key == "accuracy")
    return parseOnce(recipe.accuracy, symbol);
  if (key == "batch")
    return parseOnce(recipe.batch, integer);
  if (key == "optimizer")
    return parseOnce(recipe.optimizer, spec);
  if (key == "seed")
    return parseOnce(recipe.seed, integer);
  return parser.emitError(location) << "unknown entry '" << key
                                    << "' of a recipe: there are loss, accuracy, batch, optimizer and seed";
}

ParseResult RecipeOp::parse(OpAsmParser &parser, OperationState &state) {
  Properties &recipe = state.getOrAddProperties<Properties>();
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                     [&] { return parseRecipeEntry(parser, recipe); }))
    return failure();
  if (!recipe.loss)
    return parser.emitError(location, "a recipe needs an entry 'loss'");
  return parser.parseOptionalAttrDictWithKeyword(state.attributes);
}

void RecipeOp::print(OpAsmPrinter &printer) {
  printer << " {";
  printer.increaseIndent();
  bool first = true;
  auto entry = [&](StringRef key) -> OpAsmPrinter & {
    if (!first)
      printer << ",";
    first = false;
    printer.printNewline();
    printer << key << " = ";
    return printer;
  };
  entry("loss").printSymbolName(getLoss());
  if (getAccuracy())
    entry("accuracy").printSymbolName(*getAccuracy());
  if (getBatch())
    entry("batch") << static_cast<int64_t>(*getBatch());
  if (getOptimizer())
    getOptimizer()->printBare(entry("optimizer"));
  if (getSeed())
    entry("seed") << static_cast<int64_t>(*getSeed());
  printer.decreaseIndent();
  printer.printNewline();
  printer << "}";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"loss", "accuracy", "batch", "optimizer", "seed"});
}

LogicalResult RecipeOp::verify() {
  if (getBatch() && static_cast<int64_t>(*getBatch()) < 1)
    return emitOpError() << "batch must be at least 1, but is " << static_cast<int64_t>(*getBatch())
                         << " [recipe_C1]";
  return success();
}

/// The function returns (sum, count), both f32 or both f64 scalars.
static LogicalResult checkPair(RecipeOp op, FlatSymbolRefAttr name, StringRef role,
                               SymbolTableCollection &symbols) {
  FailureOr<func::FuncOp> function = findFunction(op, name, role, "recipe_C2", symbols);
  if (failed(function))
    return failure();
  auto isScalar = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0 &&
           (tensor.getElementType().isF32() || tensor.getElementType().isF64());
  };
  ArrayRef<Type> types = function->getResultTypes();
  if (types.size() == 2 && types[0] == types[1] && isScalar(types[0]))
    return success();
  return op.emitOpError() << role << " '" << name.getValue()
                          << "' must return (sum, count), two scalars of f32 or f64, but it returns ("
                          << types << ") [recipe_C3]";
}

LogicalResult RecipeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(checkPair(*this, getLossAttr(), "loss", symbols)))
    return failure();
  return getAccuracyAttr() ? checkPair(*this, getAccuracyAttr(), "accuracy", symbols) : success();
}

} // namespace gpuc::ir
