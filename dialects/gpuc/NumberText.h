//===- NumberText.h - Numbers as text that reads back to the same bits ------===//
//
// Internal to the dialect.
//
#pragma once

#include "mlir/IR/OpImplementation.h"

namespace gpuc::ir {

/// The shortest decimal that reads back to the same bits, always with a point: 0.001, 1.0e-05, 3.0. What has
/// no decimal is written nan, inf or -inf; a NaN with other bits than the usual ones as nan(0x7fc00001).
void printFloat(llvm::raw_ostream &os, const llvm::APFloat &value);

/// As messages write it, in the fewest digits that read back: 2, 0.999, 1e-05.
std::string numberText(double number);

/// Whether a decimal has another digit than 0 before its exponent: 1e-400 has, though as an f64 it is 0.
bool saysMoreThanZero(llvm::StringRef decimal);

/// What to say of a number that is not 0 as it is written, but is as an f64.
inline constexpr llvm::StringLiteral kTooSmall = "too small to be another number than 0: write 0.0";

/// A number read before its type is known.
struct NumberText {
  llvm::SMLoc location;
  bool negative = false;
  /// Set for 1.5, inf and nan; an f64, or the exact bits of nan(…).
  std::optional<llvm::APFloat> decimal;
  std::optional<llvm::APInt> nanBits;
  /// Set for 3; true and false are 1 and 0.
  std::optional<llvm::APInt> integer;
  bool isBool = false;
};

mlir::FailureOr<NumberText> parseNumber(mlir::AsmParser &parser);

/// The number as an attribute of the element type; an error if it does not fit in it, or is 0 there and not
/// here.
mlir::FailureOr<mlir::TypedAttr> convertNumber(mlir::AsmParser &parser, const NumberText &number,
                                               mlir::Type element);

} // namespace gpuc::ir
