//===- GpucAttributes.cpp - Specs: a name with arguments --------------------===//

#include "dialects/gpuc/GpucOps.h"
#include "dialects/gpuc/NumberText.h"

#include <cmath>

using namespace mlir;

namespace gpuc::ir {

double SpecAttr::getNumber(StringRef key, double otherwise) const {
  Attribute value = getArguments().get(key);
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    return number.getValueAsDouble();
  if (auto number = dyn_cast_or_null<IntegerAttr>(value))
    return static_cast<double>(number.getInt());
  return otherwise;
}

bool SpecAttr::getFlag(StringRef key, bool otherwise) const {
  auto flag = dyn_cast_or_null<BoolAttr>(getArguments().get(key));
  return flag ? flag.getValue() : otherwise;
}

//===----------------------------------------------------------------------===//
// In the IR
//===----------------------------------------------------------------------===//

/// A number, true or false: integers are i64, decimals f64.
static FailureOr<Attribute> parseSpecNumber(AsmParser &parser) {
  FailureOr<NumberText> number = parseNumber(parser);
  if (failed(number))
    return failure();
  MLIRContext *context = parser.getContext();
  Type type = Float64Type::get(context);
  if (number->integer)
    type = IntegerType::get(context, number->isBool ? 1 : 64);
  FailureOr<TypedAttr> value = convertNumber(parser, *number, type);
  return failed(value) ? FailureOr<Attribute>(failure()) : FailureOr<Attribute>(*value);
}

/// A number, true, false, "text", or a tuple (a, b) of such.
static FailureOr<Attribute> parseValue(AsmParser &parser) {
  std::string text;
  if (succeeded(parser.parseOptionalString(&text)))
    return Attribute(StringAttr::get(parser.getContext(), text));
  if (failed(parser.parseOptionalLParen()))
    return parseSpecNumber(parser);
  SmallVector<Attribute> values;
  auto parseElement = [&]() -> ParseResult {
    FailureOr<Attribute> value = parseValue(parser);
    if (failed(value))
      return failure();
    values.push_back(*value);
    return success();
  };
  if (parser.parseCommaSeparatedList(parseElement) || parser.parseRParen())
    return failure();
  return Attribute(ArrayAttr::get(parser.getContext(), values));
}

FailureOr<SpecAttr> SpecAttr::parseBare(AsmParser &parser) {
  StringRef name;
  NamedAttrList arguments;
  SMLoc begin = parser.getCurrentLocation();
  auto parseArgument = [&]() -> ParseResult {
    StringRef key;
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    FailureOr<Attribute> value = parseValue(parser);
    if (failed(value))
      return failure();
    if (arguments.get(key))
      return parser.emitError(location) << "'" << key << "' is given twice";
    arguments.append(key, *value);
    return success();
  };
  if (parser.parseKeyword(&name) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalParen, parseArgument))
    return failure();
  auto emitError = [&] { return parser.emitError(begin); };
  SpecAttr spec = SpecAttr::getChecked(emitError, parser.getContext(), name,
                                       arguments.getDictionary(parser.getContext()));
  return spec ? FailureOr<SpecAttr>(spec) : FailureOr<SpecAttr>(failure());
}

static void printValue(AsmPrinter &printer, Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value)) {
    printFloat(printer.getStream(), number.getValue());
  } else if (auto values = dyn_cast<ArrayAttr>(value)) {
    printer << "(";
    llvm::interleaveComma(values, printer, [&](Attribute element) { printValue(printer, element); });
    printer << ")";
  } else {
    printer.printAttributeWithoutType(value);
  }
}

void SpecAttr::printBare(AsmPrinter &printer) const {
  printer << getName();
  if (getArguments().empty())
    return;
  printer << "(";
  llvm::interleaveComma(getArguments(), printer, [&](NamedAttribute argument) {
    printer << argument.getName().getValue() << " = ";
    printValue(printer, argument.getValue());
  });
  printer << ")";
}

ParseResult parseSpec(OpAsmParser &parser, SpecAttr &spec) {
  FailureOr<SpecAttr> parsed = SpecAttr::parseBare(parser);
  spec = parsed.value_or(SpecAttr());
  return success(succeeded(parsed));
}

void printSpec(OpAsmPrinter &printer, Operation *, SpecAttr spec) { spec.printBare(printer); }

Attribute SpecAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SpecAttr> spec = parseBare(parser);
  if (failed(spec) || parser.parseGreater())
    return {};
  return *spec;
}

void SpecAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printBare(printer);
  printer << ">";
}

static bool isWord(StringRef text) {
  auto isWordCharacter = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !text.empty() && !llvm::isDigit(text.front()) && llvm::all_of(text, isWordCharacter);
}

/// What the text form can say: numbers that are i64, f64 or i1, text, and tuples of these.
static bool isSpecValue(Attribute value) {
  if (auto values = dyn_cast<ArrayAttr>(value))
    return !values.empty() && llvm::all_of(values, isSpecValue);
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getType().isF64();
  if (auto number = dyn_cast<IntegerAttr>(value))
    return number.getType().isSignlessInteger(64) || number.getType().isSignlessInteger(1);
  return isa<StringAttr>(value);
}

LogicalResult SpecAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef name,
                               DictionaryAttr arguments) {
  if (!isWord(name))
    return emitError() << "the name of a spec must be a word, but is '" << name << "' [spec_C1]";
  for (NamedAttribute argument : arguments)
    if (!isWord(argument.getName()) || !isSpecValue(argument.getValue()))
      return emitError() << "argument '" << argument.getName().getValue() << "' of spec '" << name
                         << "' must be a number, true, false, text or a tuple of these [spec_C2]";
  return success();
}

//===----------------------------------------------------------------------===//
// On the command line
//===----------------------------------------------------------------------===//

/// Splits at commas outside parentheses.
static SmallVector<StringRef> splitArguments(StringRef text) {
  SmallVector<StringRef> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.slice(begin, i));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

static Attribute valueFromText(MLIRContext *context, StringRef text) {
  Builder builder(context);
  if (text == "true" || text == "false")
    return builder.getBoolAttr(text == "true");
  if (int64_t integer; !text.getAsInteger(10, integer))
    return builder.getI64IntegerAttr(integer);
  // An infinity (1e999 is one) is no number that anything could be trained by, nor is 1e-999 one, which is 0.
  if (double number;
      !text.getAsDouble(number) && !std::isinf(number) && !(number == 0 && saysMoreThanZero(text)))
    return builder.getF64FloatAttr(number);
  if (!text.consume_front("(") || !text.consume_back(")"))
    return builder.getStringAttr(text);
  SmallVector<Attribute> values;
  for (StringRef part : splitArguments(text))
    values.push_back(valueFromText(context, part.trim()));
  return builder.getArrayAttr(values);
}

FailureOr<SpecAttr> SpecAttr::fromText(MLIRContext *context, StringRef text, std::string &error) {
  auto fail = [&](const Twine &message) {
    error = (message + ": write NAME or NAME:key=value,…").str();
    return failure();
  };
  auto [name, list] = text.split(':');
  name = name.trim();
  if (!isWord(name))
    return fail("'" + text + "' does not begin with a name");
  NamedAttrList arguments;
  if (text.contains(':'))
    for (StringRef part : splitArguments(list)) {
      auto [key, value] = part.split('=');
      key = key.trim();
      value = value.trim();
      if (!isWord(key) || value.empty() || value.count('(') != value.count(')'))
        return fail("'" + part + "' in '" + text + "' is not key=value");
      if (arguments.get(key))
        return fail("'" + key + "' is given twice in '" + text + "'");
      arguments.append(key, valueFromText(context, value));
    }
  return SpecAttr::get(context, name, arguments.getDictionary(context));
}

} // namespace gpuc::ir
