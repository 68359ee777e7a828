//===- Math.h - Transcendental functions as fixed arithmetic ----------------===//
//
// Each takes a scalar or vector of f32 or f64 and computes in arith and math.fma alone. Sources of formulas
// and coefficients stand in each file; measured errors stand in docs/numerics.md and are asserted by
// test/passes/codegen.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/math/Expr.h"

namespace gpuc::codegen {

Expr emitExp(Expr x);
/// exp(x + correction) for a correction far below 1 (null: none).
Expr emitExpOfSum(Expr x, Expr correction);
/// exp(-x) for x >= 0 as a part of something else: by fewer operations, up to 1.1 units in the last place
/// off.
Expr emitExpOfMinus(Expr x);
Expr emitExpm1(Expr x);
Expr emitSigmoid(Expr x);
Expr emitTanh(Expr x);
Expr emitLog(Expr x);
Expr emitLog1p(Expr x);
Expr emitErf(Expr x);
Expr emitSin(Expr x);
Expr emitCos(Expr x);
Expr emitTan(Expr x);
Expr emitAtan(Expr x);
Expr emitPow(Expr x, Expr y);
/// C's fmod: x - n · y, exact, with n towards zero.
Expr emitRemainder(Expr x, Expr y);

} // namespace gpuc::codegen
