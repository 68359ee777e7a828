//===- MathRemainder.cpp - C's fmod -----------------------------------------===//
//
// Long division, 51 quotient bits a step: with b' = |y| · 2^(51k) for k counting down, a ← a - trunc(a / b')
// · b'. Each difference is a multiple of b's last place and less than b', so the fused multiply-add gives it
// exactly; a quotient that was rounded up is mended by one addition.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/math/Math.h"
#include "passes/codegen/math/MathParts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace gpuc::codegen {

static Expr remainderStep(Expr a, Expr divisor) {
  Expr quotient = trunc(a / divisor);
  Expr difference = fma(-quotient, divisor, a);
  difference = select(less(difference, a.real(0)), difference + divisor, difference);
  difference = select(lessEqual(divisor, difference), difference - divisor, difference);
  return select(equal(quotient, a.real(0)), a, difference); // also where the divisor has overflowed
}

/// For f64 of no sign; 51 · steps must reach from the least ulp to the greatest number.
static Expr remainderOfMagnitudes(Expr a, Expr b, int64_t steps) {
  ImplicitLocOpBuilder &builder = a.builder();
  auto index = [&](int64_t number) { return constantInt(builder, builder.getI64Type(), number).value(); };
  auto loop = scf::ForOp::create(builder, index(0), index(steps), index(1), ValueRange{a.value()});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Expr step(builder, loop.getInductionVar());
  // 2^(51k) may be too large for a number; three factors of 2^(17k) are not.
  Expr factor = splat(powerOfTwo((step.integer(steps - 1) - step) * step.integer(17)), a.lanes());
  Expr rest = remainderStep(Expr(builder, loop.getRegionIterArg(0)), b * factor * factor * factor);
  scf::YieldOp::create(builder, rest.value());
  return {builder, loop.getResult(0)};
}

Expr emitRemainder(Expr x, Expr y) {
  if (x.bitWidth() == 64)
    return copySign(remainderOfMagnitudes(abs(x), abs(y), 42), x);
  Type wide = x.builder().getF64Type();
  Expr rest = remainderOfMagnitudes(extend(abs(x), wide), extend(abs(y), wide), 6);
  return copySign(narrow(rest, x.elementType()), x);
}

} // namespace gpuc::codegen
