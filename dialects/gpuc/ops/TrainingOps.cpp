//===- TrainingOps.cpp - The gradient, the recipe, blocks and fused kernels --===//

#include "dialects/gpuc/NumberText.h"
#include "dialects/gpuc/RecipeEntries.h"
#include "dialects/gpuc/TypeChecks.h"
#include "dialects/gpuc/ops/SymbolChecks.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/GlobPattern.h"

#include <cmath>

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

/// What an entry of a recipe holds.
enum class EntryKind { symbol, integer, number, flag, spec, specs };

/// The entries by their names, in the order in which they are printed.
const std::pair<StringLiteral, EntryKind> recipeEntries[] = {
    {"loss", EntryKind::symbol},
    {"accuracy", EntryKind::symbol},
    {"batch", EntryKind::integer},
    {"accumulate", EntryKind::integer},
    {"emulate_ranks", EntryKind::integer},
    {"data_parallel", EntryKind::flag},
    {"shard", EntryKind::spec},
    {"world_size", EntryKind::integer},
    {"sync_batch_norm", EntryKind::flag},
    {"precision", EntryKind::spec},
    {"loss_scale", EntryKind::spec},
    {"clip_value", EntryKind::number},
    {"clip_norm", EntryKind::number},
    {"skip", EntryKind::spec},
    {"optimizer", EntryKind::spec},
    {"groups", EntryKind::specs},
    {"schedule", EntryKind::specs},
    {"ema", EntryKind::spec},
    {"seed", EntryKind::integer},
};

} // namespace

SmallVector<StringRef> recipeKeys() {
  return llvm::map_to_vector(recipeEntries, [](const auto &entry) -> StringRef { return entry.first; });
}

namespace {

/// The kind of the entry named `key`, if there is one.
std::optional<EntryKind> findRecipeEntry(StringRef key) {
  auto *entry = llvm::find_if(recipeEntries, [&](const auto &entry) { return entry.first == key; });
  return entry == std::end(recipeEntries) ? std::nullopt : std::optional(entry->second);
}

template <typename Value> Attribute parseTyped(OpAsmParser &parser, Type type = {}) {
  Value value;
  return failed(parser.parseAttribute(value, type)) ? Attribute() : value;
}

/// One spec, or a list of them in parentheses; null after an error.
Attribute parseSpecs(OpAsmParser &parser) {
  SmallVector<Attribute> specs;
  auto parseSpec = [&]() -> ParseResult {
    FailureOr<SpecAttr> spec = SpecAttr::parseBare(parser);
    if (succeeded(spec))
      specs.push_back(*spec);
    return success(succeeded(spec));
  };
  bool isList = succeeded(parser.parseOptionalLParen());
  if (!isList && parseSpec())
    return {};
  bool isEmpty = isList && succeeded(parser.parseOptionalRParen());
  if (isList && !isEmpty && (parser.parseCommaSeparatedList(parseSpec) || parser.parseRParen()))
    return {};
  return parser.getBuilder().getArrayAttr(specs);
}

/// Reads the value of one entry; null after an error.
Attribute parseEntryValue(OpAsmParser &parser, EntryKind kind) {
  switch (kind) {
  case EntryKind::symbol:
    return parseTyped<FlatSymbolRefAttr>(parser);
  case EntryKind::integer:
    return parseTyped<IntegerAttr>(parser, parser.getBuilder().getI64Type());
  case EntryKind::number:
    return parseTyped<FloatAttr>(parser, parser.getBuilder().getF64Type());
  case EntryKind::flag:
    return parseTyped<BoolAttr>(parser);
  case EntryKind::spec:
    return SpecAttr::parseBare(parser).value_or(SpecAttr());
  case EntryKind::specs:
    return parseSpecs(parser);
  }
  llvm_unreachable("an entry is one of these");
}

/// Reads the value of one entry from the command line, one spec of a list. Null and an error if it is wrong.
Attribute entryFromText(Builder builder, EntryKind kind, StringRef text, std::string &error) {
  int64_t integer;
  double number;
  switch (kind) {
  case EntryKind::symbol:
    return FlatSymbolRefAttr::get(builder.getContext(), text);
  case EntryKind::integer:
    if (!text.getAsInteger(10, integer))
      return builder.getI64IntegerAttr(integer);
    error = ("'" + text + "' is not an integer").str();
    return {};
  case EntryKind::number:
    if (text.getAsDouble(number) || !std::isfinite(number))
      error = ("'" + text + "' is not a finite number").str();
    else if (number == 0 && saysMoreThanZero(text))
      error = ("'" + text + "' is " + kTooSmall).str();
    else
      return builder.getF64FloatAttr(number);
    return {};
  case EntryKind::flag:
    if (text == "true" || text == "false")
      return builder.getBoolAttr(text == "true");
    error = ("'" + text + "' is neither true nor false").str();
    return {};
  case EntryKind::spec:
  case EntryKind::specs:
    return SpecAttr::fromText(builder.getContext(), text, error).value_or(SpecAttr());
  }
  llvm_unreachable("an entry is one of these");
}

void printEntryValue(OpAsmPrinter &printer, Attribute value) {
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(value)) {
    printer.printSymbolName(symbol.getValue());
  } else if (auto flag = dyn_cast<BoolAttr>(value)) {
    printer << (flag.getValue() ? "true" : "false");
  } else if (auto number = dyn_cast<IntegerAttr>(value)) {
    printer << number.getInt();
  } else if (auto spec = dyn_cast<SpecAttr>(value)) {
    spec.printBare(printer);
  } else if (auto specs = dyn_cast<ArrayAttr>(value)) {
    printer << (specs.size() == 1 ? "" : "(");
    llvm::interleaveComma(specs, printer, [&](Attribute spec) { printEntryValue(printer, spec); });
    printer << (specs.size() == 1 ? "" : ")");
  } else {
    printFloat(printer.getStream(), cast<FloatAttr>(value).getValue());
  }
}

} // namespace

/// What is wrong with the number of entry `key`; empty if nothing is.
static std::string checkRecipeNumber(StringRef key, Attribute value) {
  bool cuts = key == "accumulate" || key == "emulate_ranks" || key == "world_size",
       counts = key == "batch" || cuts;
  bool bounds = key == "clip_value" || key == "clip_norm";
  std::string error;
  llvm::raw_string_ostream stream(error);
  if (auto number = dyn_cast<IntegerAttr>(value); counts && number.getInt() < 1)
    stream << "must be at least 1, but is " << number.getInt() << " [recipe_C1]";
  if (auto number = dyn_cast<IntegerAttr>(value); cuts && number.getInt() > INT32_MAX)
    stream << "must be below 2^31, but is " << number.getInt() << " [recipe_C1]";
  if (auto number = dyn_cast<IntegerAttr>(value); key == "seed" && number.getInt() < 0)
    stream << "must be at least 0, but is " << number.getInt() << " [recipe_C1]";
  if (auto number = dyn_cast<FloatAttr>(value); bounds && number.getValue().isPosInfinity())
    stream << "must be finite, but is inf [recipe_C4]";
  else if (bounds && number && !(number.getValueAsDouble() > 0))
    stream << "must be above 0, but is " << llvm::format("%g", number.getValueAsDouble()) << " [recipe_C4]";
  return error;
}

FailureOr<Attribute> recipeEntryFromTexts(MLIRContext *context, StringRef key, ArrayRef<std::string> texts,
                                          std::string &error) {
  std::optional<EntryKind> kind = findRecipeEntry(key);
  if (!kind) {
    error = "unknown entry of a recipe: there are " + llvm::join(recipeKeys(), ", ");
    return failure();
  }
  if (texts.size() > 1 && *kind != EntryKind::specs) {
    error = "given twice, '" + texts[0] + "' and '" + texts[1] + "'";
    return failure();
  }
  Builder builder(context);
  SmallVector<Attribute> values;
  for (const std::string &text : texts) {
    values.push_back(entryFromText(builder, *kind, text, error));
    if (!values.back())
      return failure();
  }
  Attribute value = *kind == EntryKind::specs ? builder.getArrayAttr(values) : values.front();
  error = checkRecipeNumber(key, value);
  if (!error.empty())
    return failure();
  return value;
}

static ParseResult parseRecipeEntry(OpAsmParser &parser, RecipeOp::Properties &recipe) {
  StringRef key;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&key) || parser.parseEqual())
    return failure();
  std::optional<EntryKind> kind = findRecipeEntry(key);
  if (!kind)
    return parser.emitError(location)
           << "unknown entry '" << key << "' of a recipe: there are " << llvm::join(recipeKeys(), ", ");
  if (*RecipeOp::getInherentAttr(parser.getContext(), recipe, key))
    return parser.emitError(location) << "'" << key << "' is given twice";
  Attribute value = parseEntryValue(parser, *kind);
  RecipeOp::setInherentAttr(recipe, key, value);
  return success(value != nullptr);
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
  for (const auto &[key, kind] : recipeEntries)
    if (Attribute value = *getInherentAttr(getContext(), getProperties(), key)) {
      printer << separator;
      printer.printNewline();
      printer << key << " = ";
      printEntryValue(printer, value);
      separator = ",";
    }
  printer.decreaseIndent();
  printer.printNewline();
  printer << "}";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), recipeKeys());
}

/// What is shared out is shared out among ranks, of which the plan knows how many there are.
static LogicalResult checkShards(RecipeOp recipe) {
  std::optional<SpecAttr> shard = recipe.getShard();
  if (!shard && !recipe.getWorldSize())
    return success();
  if (!shard)
    return recipe.emitOpError(
        "has world_size and nothing to shard: give shard=optimizer or shard=gradients, or leave "
        "it out, for any number of ranks [recipe_C6]");
  if (shard->getName() != "optimizer" && shard->getName() != "gradients")
    return recipe.emitOpError("shards '")
           << shard->getName() << "': there are optimizer and gradients [recipe_C6]";
  if (!recipe.getWorldSize())
    return recipe.emitOpError("shards among ranks that are not counted: give world_size [recipe_C6]");
  if (!recipe.isDataParallel())
    return recipe.emitOpError("shards among ranks, and has none: give data_parallel [recipe_C6]");
  return success();
}

LogicalResult RecipeOp::verify() {
  for (StringRef key : recipeKeys()) {
    Attribute value = *getInherentAttr(getContext(), getProperties(), key);
    std::string error = value ? checkRecipeNumber(key, value) : "";
    if (!error.empty())
      return emitOpError() << key << ' ' << error;
  }
  if (isDataParallel() && getEmulateRanks().value_or(1) > 1)
    return emitOpError() << "has data_parallel and emulates " << *getEmulateRanks()
                         << " ranks: leave out one of the two [recipe_C5]";
  if (getSyncBatchNorm().value_or(false) && !isDataParallel())
    return emitOpError()
           << "has sync_batch_norm, but no ranks that could synchronise: give it data_parallel, "
              "or leave that out [recipe_C7]";
  return checkShards(*this);
}

FailureOr<PartitionAttr> RecipeOp::getPartition(int64_t slices, int64_t rows) {
  const int64_t ranks = getEmulateRanks().value_or(1), microbatches = getAccumulate().value_or(1);
  if (ranks == 1 && microbatches == 1 && slices == 1 && !isDataParallel())
    return PartitionAttr();
  auto partition = PartitionAttr::getChecked([&] { return emitOpError(); }, getContext(), ranks, microbatches,
                                             slices, rows, isDataParallel());
  if (!partition)
    return failure();
  return partition;
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
  auto recipes = (*this)->getParentOfType<ModuleOp>().getOps<RecipeOp>();
  if (*recipes.begin() != *this) {
    InFlightDiagnostic error =
        emitOpError("is a second one: a module has one recipe, leave out the other [recipe_C8]");
    error.attachNote((*recipes.begin()).getLoc()) << "the first is here";
    return error;
  }
  if (failed(checkPair(*this, getLossAttr(), "loss", symbols)))
    return failure();
  return getAccuracyAttr() ? checkPair(*this, getAccuracyAttr(), "accuracy", symbols) : success();
}

//===----------------------------------------------------------------------===//
// gpuc.checkpoint
//===----------------------------------------------------------------------===//

std::string CheckpointOp::findMalformed(StringRef layers) {
  if (layers.empty())
    return "names no layer";
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(layers);
  return pattern ? "" : llvm::toString(pattern.takeError());
}

LogicalResult CheckpointOp::verify() {
  if (std::string malformed = findMalformed(getLayers()); !malformed.empty())
    return emitOpError() << "'" << getLayers() << "' " << malformed << " [checkpoint_C1]";
  if (getLayers().contains(','))
    return emitOpError() << "'" << getLayers()
                         << "' has a comma: give each pattern an op of its own [checkpoint_C2]";
  return success();
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
