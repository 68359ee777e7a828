//===- TrainingOps.cpp - The gradient, the recipe and fused kernels ---------===//

#include "dialects/gpuc/NumberText.h"
#include "dialects/gpuc/RecipeEntries.h"
#include "dialects/gpuc/TypeChecks.h"
#include "dialects/gpuc/ops/SymbolChecks.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <variant>

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
  if (getSeed() && getSeed().getType() != scalar)
    return emitOpError() << "the seed must be of the type of the first result, " << scalar << ", but is of "
                         << getSeed().getType() << " [gradient_C8]";
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

namespace {

using Recipe = RecipeOp::Properties;

/// An entry of a recipe by its name: one of these kinds. They are printed in this order.
using RecipeSlot = std::variant<FlatSymbolRefAttr Recipe::*, IntegerAttr Recipe::*, FloatAttr Recipe::*,
                                SpecAttr Recipe::*, ArrayAttr Recipe::*>;
const std::pair<StringLiteral, RecipeSlot> recipeEntries[] = {
    {"loss", &Recipe::loss},
    {"accuracy", &Recipe::accuracy},
    {"batch", &Recipe::batch},
    {"accumulate", &Recipe::accumulate},
    {"precision", &Recipe::precision},
    {"loss_scale", &Recipe::loss_scale},
    {"clip_value", &Recipe::clip_value},
    {"clip_norm", &Recipe::clip_norm},
    {"skip", &Recipe::skip},
    {"optimizer", &Recipe::optimizer},
    {"groups", &Recipe::groups},
    {"schedule", &Recipe::schedule},
    {"ema", &Recipe::ema},
    {"seed", &Recipe::seed},
};

SmallVector<StringRef> recipeKeys() {
  return llvm::map_to_vector(recipeEntries, [](const auto &entry) -> StringRef { return entry.first; });
}

/// The entry named `key`, or null.
const RecipeSlot *findRecipeSlot(StringRef key) {
  auto *entry = llvm::find_if(recipeEntries, [&](const auto &entry) { return entry.first == key; });
  return entry == std::end(recipeEntries) ? nullptr : &entry->second;
}

/// Reads the value of one entry into `slot`, by its kind.
struct RecipeParser {
  OpAsmParser &parser;

  ParseResult operator()(FlatSymbolRefAttr &slot) { return parser.parseAttribute(slot); }
  ParseResult operator()(IntegerAttr &slot) {
    return parser.parseAttribute(slot, parser.getBuilder().getI64Type());
  }
  ParseResult operator()(FloatAttr &slot) {
    return parser.parseAttribute(slot, parser.getBuilder().getF64Type());
  }
  ParseResult operator()(SpecAttr &slot) {
    FailureOr<SpecAttr> spec = SpecAttr::parseBare(parser);
    slot = failed(spec) ? SpecAttr() : *spec;
    return success(succeeded(spec));
  }
  /// One spec, or a list of them in parentheses.
  ParseResult operator()(ArrayAttr &slot) {
    SmallVector<Attribute> specs;
    auto parseSpec = [&]() -> ParseResult {
      SpecAttr spec;
      if ((*this)(spec))
        return failure();
      specs.push_back(spec);
      return success();
    };
    bool isList = succeeded(parser.parseOptionalLParen());
    if (!isList && parseSpec())
      return failure();
    bool isEmpty = isList && succeeded(parser.parseOptionalRParen());
    if (isList && !isEmpty && (parser.parseCommaSeparatedList(parseSpec) || parser.parseRParen()))
      return failure();
    slot = parser.getBuilder().getArrayAttr(specs);
    return success();
  }
};

/// Writes the value of one entry.
struct RecipePrinter {
  OpAsmPrinter &printer;

  void operator()(FlatSymbolRefAttr symbol) { printer.printSymbolName(symbol.getValue()); }
  void operator()(IntegerAttr number) { printer << number.getInt(); }
  /// Infinity as its bits, which are all that an attribute can be read from.
  void operator()(FloatAttr number) {
    if (number.getValue().isFinite())
      printFloat(printer.getStream(), number.getValue());
    else
      printer.printAttributeWithoutType(number);
  }
  void operator()(SpecAttr spec) { spec.printBare(printer); }
  void operator()(ArrayAttr specs) {
    printer << (specs.size() == 1 ? "" : "(");
    llvm::interleaveComma(specs.getAsRange<SpecAttr>(), printer, *this);
    printer << (specs.size() == 1 ? "" : ")");
  }
};

/// Reads the value of one entry from the command line. What is wrong with it; empty if nothing is.
struct RecipeTextReader {
  Builder builder;
  StringRef text;

  std::string operator()(FlatSymbolRefAttr &slot) {
    slot = FlatSymbolRefAttr::get(builder.getContext(), text);
    return "";
  }
  std::string operator()(IntegerAttr &slot) {
    int64_t number;
    if (text.getAsInteger(10, number))
      return ("'" + text + "' is not an integer").str();
    slot = builder.getI64IntegerAttr(number);
    return "";
  }
  std::string operator()(FloatAttr &slot) {
    double number;
    if (text.getAsDouble(number) || !std::isfinite(number))
      return ("'" + text + "' is not a finite number").str();
    slot = builder.getF64FloatAttr(number);
    return "";
  }
  std::string operator()(SpecAttr &slot) {
    std::string error;
    FailureOr<SpecAttr> spec = SpecAttr::fromText(builder.getContext(), text, error);
    slot = failed(spec) ? SpecAttr() : *spec;
    return error;
  }
  /// One more spec of the list.
  std::string operator()(ArrayAttr &slot) {
    SpecAttr spec;
    std::string error = (*this)(spec);
    SmallVector<Attribute> specs(slot ? slot.getValue() : ArrayRef<Attribute>());
    specs.push_back(spec);
    if (spec)
      slot = builder.getArrayAttr(specs);
    return error;
  }
};

} // namespace

/// What is wrong with the number of entry `key`; empty if nothing is.
static std::string checkRecipeNumber(StringRef key, Attribute value) {
  bool counts = key == "batch" || key == "accumulate", bounds = key == "clip_value" || key == "clip_norm";
  std::string error;
  llvm::raw_string_ostream stream(error);
  if (auto number = dyn_cast<IntegerAttr>(value); counts && number.getInt() < 1)
    stream << "must be at least 1, but is " << number.getInt() << " [recipe_C1]";
  if (auto number = dyn_cast<IntegerAttr>(value); key == "accumulate" && number.getInt() > INT32_MAX)
    stream << "must be below 2^31, but is " << number.getInt() << " [recipe_C1]";
  if (auto number = dyn_cast<FloatAttr>(value); bounds && !(number.getValueAsDouble() > 0))
    stream << "must be above 0, but is " << llvm::format("%g", number.getValueAsDouble()) << " [recipe_C4]";
  return error;
}

FailureOr<Attribute> recipeEntryFromTexts(MLIRContext *context, StringRef key, ArrayRef<std::string> texts,
                                          std::string &error) {
  const RecipeSlot *slot = findRecipeSlot(key);
  if (!slot) {
    error = "unknown entry of a recipe: there are " + llvm::join(recipeKeys(), ", ");
    return failure();
  }
  if (texts.size() > 1 && !std::holds_alternative<ArrayAttr Recipe::*>(*slot)) {
    error = "given twice, '" + texts[0] + "' and '" + texts[1] + "'";
    return failure();
  }
  Recipe recipe;
  auto read = [&](auto member) -> Attribute {
    for (const std::string &text : texts)
      if (error = RecipeTextReader{Builder(context), text}(recipe.*member); !error.empty())
        return {};
    return recipe.*member;
  };
  Attribute value = std::visit(read, *slot);
  if (value)
    error = checkRecipeNumber(key, value);
  if (!error.empty())
    return failure();
  return value;
}

static ParseResult parseRecipeEntry(OpAsmParser &parser, Recipe &recipe) {
  StringRef key;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&key) || parser.parseEqual())
    return failure();
  const RecipeSlot *slot = findRecipeSlot(key);
  if (!slot)
    return parser.emitError(location)
           << "unknown entry '" << key << "' of a recipe: there are " << llvm::join(recipeKeys(), ", ");
  return std::visit(
      [&](auto member) -> ParseResult {
        if (recipe.*member)
          return parser.emitError(location) << "'" << key << "' is given twice";
        return RecipeParser{parser}(recipe.*member);
      },
      *slot);
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
  const char *separator = "";
  for (const auto &[key, slot] : recipeEntries)
    std::visit(
        [&](auto member) {
          if (!(getProperties().*member))
            return;
          printer << separator;
          printer.printNewline();
          printer << key << " = ";
          RecipePrinter{printer}(getProperties().*member);
          separator = ",";
        },
        slot);
  printer.decreaseIndent();
  printer.printNewline();
  printer << "}";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), recipeKeys());
}

LogicalResult RecipeOp::verify() {
  for (const auto &[key, slot] : recipeEntries) {
    Attribute value = std::visit([&](auto member) -> Attribute { return getProperties().*member; }, slot);
    std::string error = value ? checkRecipeNumber(key, value) : "";
    if (!error.empty())
      return emitOpError() << key << ' ' << error;
  }
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

//===----------------------------------------------------------------------===//
// gpuc.fused
//===----------------------------------------------------------------------===//

LogicalResult FusedOp::verify() {
  Block &block = getBody().front();
  if (TypeRange(block.getArgumentTypes()) != getInputs().getTypes())
    return emitOpError() << "region takes (" << block.getArgumentTypes() << "), but the inputs are ("
                         << getInputs().getTypes() << ") [fused_C1]";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().getTypes() != getOutputs().getTypes())
    return emitOpError() << "region must end in a gpuc.yield of (" << getOutputs().getTypes()
                         << ") [fused_C2]";
  return success();
}

} // namespace gpuc::ir
