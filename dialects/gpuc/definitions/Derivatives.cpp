//===- Derivatives.cpp - The table of vector-Jacobian products --------------===//
//
// One record an op: what must be kept of the forward pass, and one expression for each operand. `ct` is the
// cotangent of the result `y`. Conventions at ties and kinks are PyTorch's and stand in the ops'
// descriptions; the rows follow derivatives.yaml of PyTorch where more than one choice exists. Ops that need
// code have theirs in ShapeDerivatives.cpp, ReduceDerivatives.cpp and Losses.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/VjpHelpers.h"

#include <numbers>

using namespace mlir;

namespace gpuc::ir {

template <typename... Values> static SmallVector<Value> residuals(Values... values) { return {values...}; }

#define GPUC_VJP(OP, NAMES, RESIDUALS, ...)                                                                  \
  SmallVector<Value> OP::getResiduals() {                                                                    \
    NAMES(GPUC_VALUE)                                                                                        \
    return RESIDUALS;                                                                                        \
  }                                                                                                          \
  GPUC_VJP_BODY(OP) {                                                                                        \
    NAMES(GPUC_EXPR)                                                                                         \
    return Cotangents{__VA_ARGS__};                                                                          \
  }
#define GPUC_VALUE(NAME, GETTER) [[maybe_unused]] Value NAME = GETTER();
#define GPUC_EXPR(NAME, GETTER) [[maybe_unused]] Expr NAME = ct.at(op.GETTER());

#define GPUC_UNARY_NAMES(BIND) BIND(x, getOperand) BIND(y, getResult)
#define GPUC_BINARY_NAMES(BIND) BIND(lhs, getLhs) BIND(rhs, getRhs) BIND(y, getResult)
#define GPUC_FMA_NAMES(BIND) BIND(a, getA) BIND(b, getB)
#define GPUC_SELECT_NAMES(BIND) BIND(condition, getCondition)

#define UNARY(OP, RESIDUALS, DX) GPUC_VJP(OP, GPUC_UNARY_NAMES, RESIDUALS, DX)
#define BINARY(OP, RESIDUALS, DLHS, DRHS) GPUC_VJP(OP, GPUC_BINARY_NAMES, RESIDUALS, DLHS, DRHS)
#define CONSTANT(OP) UNARY(OP, residuals(), Value())

static constexpr double twoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;
static constexpr double sqrtHalf = std::numbers::sqrt2 / 2;
static constexpr double sqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
static constexpr double inverseSqrtTwoPi = sqrtHalf * std::numbers::inv_sqrtpi;

// clang-format off

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

BINARY(AddOp, residuals(), ct, ct)
BINARY(SubOp, residuals(), ct, -ct)
BINARY(MulOp, residuals(lhs, rhs), ct * rhs, ct * lhs)
BINARY(DivOp, residuals(rhs, y), ct / rhs, -(ct * y / rhs))
// y = lhs - q · rhs with a whole number q, which rounding finds again.
BINARY(RemOp, residuals(lhs, rhs, y), ct, -(ct * round((lhs - y) / rhs)))
BINARY(MaxOp, residuals(lhs, rhs), select(lhs == rhs, ct * 0.5, select(lhs < rhs, 0.0, ct)),
       select(lhs == rhs, ct * 0.5, select(lhs > rhs, 0.0, ct)))
BINARY(MinOp, residuals(lhs, rhs), select(lhs == rhs, ct * 0.5, select(lhs > rhs, 0.0, ct)),
       select(lhs == rhs, ct * 0.5, select(lhs < rhs, 0.0, ct)))
// The selects stand inside, so that no branch that is not taken turns 0 · ∞ into NaN in a second derivative.
BINARY(PowOp, residuals(lhs, rhs, y), ct * rhs * pow(lhs, select(rhs == 0, 0.0, rhs - 1)),
       ct * y * log(select((lhs == 0) & (rhs >= 0), 1.0, lhs)))
GPUC_VJP(FmaOp, GPUC_FMA_NAMES, residuals(a, b), ct * b, ct * a, ct)
UNARY(NegOp, residuals(), -ct)
UNARY(AbsOp, residuals(x), ct * sign(x))
CONSTANT(SignOp)
CONSTANT(FloorOp)
CONSTANT(CeilOp)
CONSTANT(RoundOp)

//===----------------------------------------------------------------------===//
// Transcendental functions
//===----------------------------------------------------------------------===//

UNARY(ExpOp, residuals(y), ct * y)
UNARY(Expm1Op, residuals(y), ct * (y + 1))
UNARY(LogOp, residuals(x), ct / x)
UNARY(Log1pOp, residuals(x), ct / (x + 1))
UNARY(SqrtOp, residuals(y), ct * 0.5 / y)
UNARY(RsqrtOp, residuals(y), ct * -0.5 * (y * y * y))
UNARY(SinOp, residuals(x), ct * cos(x))
UNARY(CosOp, residuals(x), -(ct * sin(x)))
UNARY(TanOp, residuals(y), ct * (y * y + 1))
UNARY(AtanOp, residuals(x), ct / (x * x + 1))
UNARY(TanhOp, residuals(y), ct * (1 - y * y))
UNARY(SigmoidOp, residuals(y), ct * (y * (1 - y)))
UNARY(ErfOp, residuals(x), ct * (twoOverSqrtPi * exp(-(x * x))))

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// Φ(x) + x · φ(x).
static Expr geluDerivative(Expr x) {
  return 0.5 * (1 + erf(x * sqrtHalf)) + x * (inverseSqrtTwoPi * exp(x * x * -0.5));
}

/// With u = √(2/π) (x + 0.044715 x³): (1 + tanh u) / 2 + x (1 - tanh² u) u' / 2.
static Expr geluTanhDerivative(Expr x) {
  Expr square = x * x;
  Expr t = tanh(sqrtTwoOverPi * (x + 0.044715 * (square * x)));
  Expr inner = sqrtTwoOverPi * (1 + 0.134145 * square);
  return 0.5 * (1 + t) + 0.5 * (x * ((1 - t * t) * inner));
}

static Expr siluDerivative(Expr x) {
  Expr s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

UNARY(ReluOp, residuals(y), select(y <= 0, 0.0, ct))
UNARY(LeakyReluOp, residuals(x), select(x > 0, ct, ct * op.getSlope().convertToDouble()))
UNARY(GeluOp, residuals(x), ct * (op.getApproximate() ? geluTanhDerivative(x) : geluDerivative(x)))
UNARY(SiluOp, residuals(x), ct * siluDerivative(x))
UNARY(ClampOp, residuals(x),
      select((x > op.getLow().convertToDouble()) & (x < op.getHigh().convertToDouble()), ct, 0.0))

//===----------------------------------------------------------------------===//
// Selection and casts
//===----------------------------------------------------------------------===//

GPUC_VJP(SelectOp, GPUC_SELECT_NAMES, residuals(condition), Value(), select(condition, ct, 0.0),
         select(condition, 0.0, ct))

/// Only from one floating-point type to another does a derivative pass.
static Value castBack(Expr ct, CastOp op) {
  Type from = tensorType(op.getOperand()).getElementType();
  return isa<FloatType>(from) && isa<FloatType>(ct.elementType()) ? cast(ct, from).value() : Value();
}
UNARY(CastOp, residuals(), castBack(ct, op))
CONSTANT(StopGradientOp)
BINARY(ScaleGradientOp, residuals(rhs), ct * rhs, Value())

} // namespace gpuc::ir
