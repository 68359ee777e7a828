//===- Pointwise.cpp - One op, one element ----------------------------------===//

#include "passes/codegen/Pointwise.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Element.h"
#include "passes/codegen/math/Math.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

template <typename Op> static Expr make(Expr a, Expr b) {
  return {a.builder(), Op::create(a.builder(), a.value(), b.value())};
}

Expr maximum(Expr a, Expr b, bool isUnsigned) {
  if (a.isFloat())
    return make<arith::MaximumFOp>(a, b);
  return isUnsigned ? make<arith::MaxUIOp>(a, b) : make<arith::MaxSIOp>(a, b);
}

Expr minimum(Expr a, Expr b, bool isUnsigned) {
  if (a.isFloat())
    return make<arith::MinimumFOp>(a, b);
  return isUnsigned ? make<arith::MinUIOp>(a, b) : make<arith::MinSIOp>(a, b);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Quotient or remainder with every divisor allowed: the hardware's trap is never reached, 0 and -1 are set
/// apart.
static Expr divideIntegers(Expr a, Expr b, bool isUnsigned, bool remainder) {
  Expr zero = a.integer(0), one = a.integer(1);
  Expr byZero = equal(b, zero);
  if (isUnsigned) {
    Expr divisor = select(byZero, one, b);
    return select(byZero, zero,
                  remainder ? make<arith::RemUIOp>(a, divisor) : make<arith::DivUIOp>(a, divisor));
  }
  Expr byMinusOne = equal(b, a.integer(-1));
  Expr divisor = select(byZero | byMinusOne, one, b);
  Expr result = remainder ? make<arith::RemSIOp>(a, divisor) : make<arith::DivSIOp>(a, divisor);
  return select(byZero, zero, select(byMinusOne, remainder ? zero : -a, result));
}

static Expr emitSign(Expr x, bool isUnsigned) {
  Expr zero = x.real(0), one = x.real(1);
  if (isUnsigned)
    return select(equal(x, zero), zero, one);
  Expr sign = select(less(zero, x), one, select(less(x, zero), x.real(-1), x)); // x itself: ±0 and NaN
  return sign;
}

static Expr emitAbs(Expr x, bool isUnsigned) { return isUnsigned ? x : abs(x); }

static Expr emitCompare(CompareOp op, Expr a, Expr b, bool isUnsigned) {
  // Predicates in the order of gpuc.compare: eq ne lt le gt ge.
  static constexpr arith::CmpFPredicate onFloats[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                                      arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                                      arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
  static constexpr arith::CmpIPredicate onSigned[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                      arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
                                                      arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
  static constexpr arith::CmpIPredicate onUnsigned[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                        arith::CmpIPredicate::ult, arith::CmpIPredicate::ule,
                                                        arith::CmpIPredicate::ugt, arith::CmpIPredicate::uge};
  auto which = static_cast<unsigned>(op.getPredicate());
  ImplicitLocOpBuilder &builder = a.builder();
  if (a.isFloat())
    return {builder, arith::CmpFOp::create(builder, onFloats[which], a.value(), b.value())};
  return {builder, arith::CmpIOp::create(builder, isUnsigned ? onUnsigned[which] : onSigned[which], a.value(),
                                         b.value())};
}

static Expr emitClamp(ClampOp op, Expr x) {
  Expr low = x.real(op.getLow().convertToDouble()), high = x.real(op.getHigh().convertToDouble());
  return minimum(maximum(x, low, false), high, false);
}

static Expr emitNot(Expr x) { return x ^ x.integer(-1); }

/// |x| < infinity: false of NaN, too.
static Expr emitIsFinite(Expr x) { return less(abs(x), x.real(std::numeric_limits<double>::infinity())); }

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

bool isPointwise(Operation *op) { return op->hasTrait<Pointwise>() && !isa<CompositeOpInterface>(op); }

/// On operands in the form that arithmetic is done in.
static Expr emitArithmetic(Operation *op, ArrayRef<Expr> x, bool isUnsigned) {
  return TypeSwitch<Operation *, Expr>(op)
      .Case<AddOp>([&](auto) { return x[0] + x[1]; })
      .Case<SubOp>([&](auto) { return x[0] - x[1]; })
      .Case<MulOp>([&](auto) { return x[0] * x[1]; })
      .Case<DivOp>(
          [&](auto) { return x[0].isFloat() ? x[0] / x[1] : divideIntegers(x[0], x[1], isUnsigned, false); })
      .Case<RemOp>([&](auto) {
        return x[0].isFloat() ? emitRemainder(x[0], x[1]) : divideIntegers(x[0], x[1], isUnsigned, true);
      })
      .Case<MaxOp>([&](auto) { return maximum(x[0], x[1], isUnsigned); })
      .Case<MinOp>([&](auto) { return minimum(x[0], x[1], isUnsigned); })
      .Case<PowOp>([&](auto) { return emitPow(x[0], x[1]); })
      .Case<FmaOp>([&](auto) { return fma(x[0], x[1], x[2]); })
      .Case<NegOp>([&](auto) { return -x[0]; })
      .Case<AbsOp>([&](auto) { return emitAbs(x[0], isUnsigned); })
      .Case<SignOp>([&](auto) { return emitSign(x[0], isUnsigned); })
      .Case<FloorOp>([&](auto) { return floor(x[0]); })
      .Case<CeilOp>([&](auto) { return ceil(x[0]); })
      .Case<RoundOp>([&](auto) { return roundEven(x[0]); })
      .Case<ExpOp>([&](auto) { return emitExp(x[0]); })
      .Case<Expm1Op>([&](auto) { return emitExpm1(x[0]); })
      .Case<LogOp>([&](auto) { return emitLog(x[0]); })
      .Case<Log1pOp>([&](auto) { return emitLog1p(x[0]); })
      .Case<SqrtOp>([&](auto) { return sqrt(x[0]); })
      .Case<RsqrtOp>([&](auto) { return 1.0 / sqrt(x[0]); })
      .Case<SinOp>([&](auto) { return emitSin(x[0]); })
      .Case<CosOp>([&](auto) { return emitCos(x[0]); })
      .Case<TanOp>([&](auto) { return emitTan(x[0]); })
      .Case<AtanOp>([&](auto) { return emitAtan(x[0]); })
      .Case<TanhOp>([&](auto) { return emitTanh(x[0]); })
      .Case<SigmoidOp>([&](auto) { return emitSigmoid(x[0]); })
      .Case<ErfOp>([&](auto) { return emitErf(x[0]); })
      .Case<ReluOp>([&](auto) { return maximum(x[0], x[0].real(0), false); })
      .Case<ClampOp>([&](ClampOp clamp) { return emitClamp(clamp, x[0]); })
      .Case<AndOp>([&](auto) { return x[0] & x[1]; })
      .Case<OrOp>([&](auto) { return x[0] | x[1]; })
      .Case<XorOp>([&](auto) { return x[0] ^ x[1]; })
      .Case<NotOp>([&](auto) { return emitNot(x[0]); })
      .Case<CompareOp>([&](CompareOp compare) { return emitCompare(compare, x[0], x[1], isUnsigned); })
      .Case<IsFiniteOp>([&](auto) { return emitIsFinite(x[0]); })
      .Default([](Operation *) -> Expr { llvm_unreachable("not a pointwise op"); });
}

Expr emitPointwise(Operation *op, ArrayRef<Expr> operands) {
  ElementKind kind = elementKind(op->getOperand(0).getType());
  ElementKind resultKind = elementKind(op->getResult(0).getType());
  if (isa<ScaleGradientOp, StopGradientOp>(op))
    return operands[0];
  if (isa<SelectOp>(op)) // moves bits, computes nothing
    return select(operands[0], operands[1], operands[2]);
  if (isa<CastOp>(op))
    return castElement(operands[0], kind, resultKind);
  SmallVector<Expr> computed;
  for (Expr operand : operands)
    computed.push_back(toCompute(operand, kind));
  return fromCompute(emitArithmetic(op, computed, isUnsigned(kind)), resultKind);
}

} // namespace gpuc::codegen
