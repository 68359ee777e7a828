//===- NumberText.cpp - Numbers as text that reads back to the same bits ----===//

#include "dialects/gpuc/NumberText.h"

#include <charconv>
#include <cstring>

using namespace mlir;

namespace gpuc::ir {

/// Shortest digits for the float or double that holds the value; every f16 and bf16 is a float.
static std::string shortestDigits(const APFloat &value) {
  char buffer[64];
  bool isDouble = &value.getSemantics() == &APFloat::IEEEdouble();
  double number = value.convertToDouble();
  auto end = isDouble ? std::to_chars(buffer, buffer + sizeof(buffer), number)
                      : std::to_chars(buffer, buffer + sizeof(buffer), static_cast<float>(number));
  return std::string(buffer, end.ptr);
}

std::string numberText(double number) { return shortestDigits(APFloat(number)); }

void printFloat(raw_ostream &os, const APFloat &value) {
  if (value.isInfinity()) {
    os << (value.isNegative() ? "-inf" : "inf");
    return;
  }
  if (value.isNaN()) {
    os << "nan";
    if (!value.bitwiseIsEqual(APFloat::getQNaN(value.getSemantics())))
      os << "(0x" << llvm::utohexstr(value.bitcastToAPInt().getZExtValue(), /*LowerCase=*/true) << ")";
    return;
  }
  std::string digits = shortestDigits(value);
  if (digits.find('.') == std::string::npos)
    digits.insert(std::min(digits.find('e'), digits.size()), ".0");
  os << digits;
}

/// nan, nan(0x…) or inf, after an optional minus.
static ParseResult parseNotFinite(AsmParser &parser, StringRef keyword, NumberText &number) {
  if (keyword == "inf") {
    number.decimal = APFloat::getInf(APFloat::IEEEdouble(), number.negative);
    return success();
  }
  number.decimal = APFloat::getQNaN(APFloat::IEEEdouble(), number.negative);
  if (failed(parser.parseOptionalLParen()))
    return success();
  APInt bits;
  OptionalParseResult parsed = parser.parseOptionalInteger(bits);
  if (!parsed.has_value() || failed(*parsed))
    return parser.emitError(number.location, "expected the bits of the NaN, such as nan(0x7fc00001)");
  number.nanBits = bits;
  return parser.parseRParen();
}

/// Of 1e-3 MLIR's lexer makes the integer 1 and a word: its decimals have a point.
static ParseResult refuseExponent(AsmParser &parser, const NumberText &number) {
  StringRef word;
  if (failed(parser.parseOptionalKeyword(&word)))
    return success();
  if (word.starts_with_insensitive("e"))
    return parser.emitError(number.location, "a number with an exponent has a point: write 1.0e-3 for 1e-3");
  return parser.emitError(number.location, "'") << word << "' follows the number";
}

bool saysMoreThanZero(StringRef decimal) {
  StringRef digits = decimal.take_until([](char c) { return c == 'e' || c == 'E'; });
  return digits.find_first_of("123456789") != StringRef::npos;
}

/// What a decimal says must not be lost: MLIR makes an infinity of one that is too large, and 0 of one that
/// is too small.
static ParseResult parseDecimal(AsmParser &parser, NumberText &number) {
  const char *text = parser.getCurrentLocation().getPointer(); // of a buffer that ends with a null
  const StringRef digits(text, std::strspn(text, "0123456789."));
  APFloat decimal(APFloat::IEEEdouble());
  if (failed(parser.parseFloat(APFloat::IEEEdouble(), decimal)))
    return failure();
  if (decimal.isInfinity())
    return parser.emitError(number.location, "the number does not fit in f64: write inf for infinity");
  if (decimal.isZero() && saysMoreThanZero(digits))
    return parser.emitError(number.location, "the number is ") << kTooSmall;
  number.decimal = number.negative ? -decimal : decimal;
  return success();
}

FailureOr<NumberText> parseNumber(AsmParser &parser) {
  NumberText number;
  number.location = parser.getCurrentLocation();
  number.negative = succeeded(parser.parseOptionalMinus());
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword, {"true", "false", "nan", "inf"}))) {
    if (keyword == "nan" || keyword == "inf")
      return failed(parseNotFinite(parser, keyword, number)) ? FailureOr<NumberText>(failure()) : number;
    number.integer = APInt(64, keyword == "true");
    number.isBool = true;
    return number;
  }
  APInt integer;
  OptionalParseResult parsed = parser.parseOptionalInteger(integer);
  if (parsed.has_value()) {
    number.integer = integer;
    return failed(*parsed) || failed(refuseExponent(parser, number)) ? FailureOr<NumberText>(failure())
                                                                     : number;
  }
  return failed(parseDecimal(parser, number)) ? FailureOr<NumberText>(failure()) : number;
}

static FailureOr<TypedAttr> convertFloat(AsmParser &parser, const NumberText &number, FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  if (number.nanBits) {
    APFloat value(semantics, number.nanBits->zextOrTrunc(type.getWidth()));
    if (number.nanBits->getActiveBits() > type.getWidth() || !value.isNaN())
      return parser.emitError(number.location) << "these are not the bits of a NaN of type " << type;
    return TypedAttr(FloatAttr::get(type, value));
  }
  APFloat value(semantics);
  bool losesInfo;
  if (number.decimal) {
    value = *number.decimal;
    value.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  } else {
    value.convertFromAPInt(number.integer->zext(number.integer->getBitWidth() + 1), true,
                           APFloat::rmNearestTiesToEven);
    if (number.negative)
      value.changeSign();
  }
  if (value.isInfinity() && !(number.decimal && number.decimal->isInfinity()))
    return parser.emitError(number.location) << "the number does not fit in " << type;
  if (value.isZero() && number.decimal && !number.decimal->isZero())
    return parser.emitError(number.location)
           << "the number is 0 in " << type << ", which holds none so small";
  return TypedAttr(FloatAttr::get(type, value));
}

static FailureOr<TypedAttr> convertInteger(AsmParser &parser, const NumberText &number, IntegerType type) {
  if (!number.integer || number.isBool != (type.getWidth() == 1))
    return parser.emitError(number.location)
           << "expected " << (type.getWidth() == 1 ? "true or false" : "an integer") << " for element type "
           << type;
  APInt value = number.integer->zext(std::max(number.integer->getBitWidth(), type.getWidth()) + 1);
  if (number.negative)
    value.negate();
  bool fits = type.isUnsigned() || number.isBool ? !number.negative && value.isIntN(type.getWidth())
                                                 : value.isSignedIntN(type.getWidth());
  if (!fits)
    return parser.emitError(number.location) << "the number does not fit in " << type;
  return TypedAttr(IntegerAttr::get(type, value.trunc(type.getWidth())));
}

FailureOr<TypedAttr> convertNumber(AsmParser &parser, const NumberText &number, Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    return convertFloat(parser, number, type);
  if (auto type = dyn_cast<IntegerType>(element))
    return convertInteger(parser, number, type);
  return parser.emitError(number.location)
         << "expected an integer or floating-point element type, not " << element;
}

} // namespace gpuc::ir
