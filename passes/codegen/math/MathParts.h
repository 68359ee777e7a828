//===- MathParts.h - Pieces that several functions share --------------------===//
#pragma once

#include "passes/codegen/math/Expr.h"

namespace gpuc::codegen {

/// 2^n of an integer of the float's width, for n that gives a normal number.
inline Expr powerOfTwo(Expr n) {
  bool wide = n.bitWidth() == 64;
  return floatFromBits(shiftLeft(n + n.integer(wide ? 1023 : 127), wide ? 52 : 23));
}

/// x = 2^exponent · (1 + fraction) with 1 + fraction in [sqrt(1/2), sqrt(2)), for positive finite x.
struct Split {
  Expr exponent; ///< As a float.
  Expr fraction;
};
Split splitFloat(Expr x);

} // namespace gpuc::codegen
