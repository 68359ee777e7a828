//===- RunningErrorElements.cpp - Rules of what is computed one by one -------===//

#include "dialects/gpuc/GpucOps.h"
#include "test/reference/RunningError.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace gpuc::reference {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool maySwap(const Element &a, const Element &b, double unit) {
  if (a.real == b.real && a.terms == b.terms)
    return false;
  return !(std::abs(a.real - b.real) > unit * (a.terms + b.terms));
}

//===----------------------------------------------------------------------===//
// Functions of one number
//===----------------------------------------------------------------------===//

/// |f'(x)| of a function whose second derivative is at most 2; -1 of others. `y` is f(x).
static double slopeOf(Operation *op, double x, double y) {
  return TypeSwitch<Operation *, double>(op)
      .Case<ir::SinOp>([&](auto) { return std::abs(std::cos(x)); })
      .Case<ir::CosOp>([&](auto) { return std::abs(std::sin(x)); })
      .Case<ir::AtanOp>([&](auto) { return 1 / (1 + x * x); })
      .Case<ir::TanhOp>([&](auto) { return 1 - y * y; })
      .Case<ir::SigmoidOp>([&](auto) { return y * (1 - y); })
      .Case<ir::ErfOp>([&](auto) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); })
      .Case<ir::NegOp, ir::AbsOp, ir::ClampOp, ir::StopGradientOp, ir::ScaleGradientOp>(
          [](auto) { return 1.0; })
      .Default([](Operation *) { return -1.0; });
}

/// Terms of f(x) for functions with a pole at 0, by |f'| at half of x: `slope` is |f'(x)|.
static double awayFromPole(const Element &x, double slope, double unit) {
  bool reachesPole = 2 * unit * x.terms >= std::abs(x.real);
  return reachesPole ? (x.terms == 0 ? 0 : kInfinity) : 3 * slope * x.terms;
}

/// The square root moves by no more than the root of what its argument moves by.
static double termsOfRoot(const Element &x, double y, double unit) {
  if (x.terms == 0)
    return 0;
  return std::min(y == 0 ? kInfinity : x.terms / y, std::sqrt(x.terms / unit));
}

/// 0 where the number stays between two jumps of a function with integer results, at distance `toJump`.
static double termsOfJump(const Element &x, double toJump, double unit) {
  return unit * x.terms >= toJump && x.terms != 0 ? 1 / unit : 0;
}

/// Without the rounding of the result; NaN of an op that is no function of one number.
static double termsOfUnary(Operation *op, const Element &x, double y, double unit) {
  if (std::isinf(x.terms))
    return kInfinity;
  double error = unit * x.terms, slope = slopeOf(op, x.real, y);
  if (slope >= 0)
    return (slope + error) * x.terms;
  double fraction = x.real - std::floor(x.real);
  return TypeSwitch<Operation *, double>(op)
      .Case<ir::ExpOp>([&](auto) { return error > 1 ? kInfinity : times(2 * y, x.terms); })
      .Case<ir::Expm1Op>([&](auto) { return error > 1 ? kInfinity : times(2 * (y + 1), x.terms); })
      .Case<ir::LogOp>([&](auto) { return awayFromPole(x, 1 / std::abs(x.real), unit); })
      .Case<ir::Log1pOp>(
          [&](auto) { return awayFromPole({1 + x.real, 0, x.terms}, 1 / std::abs(1 + x.real), unit); })
      .Case<ir::SqrtOp>([&](auto) { return termsOfRoot(x, y, unit); })
      .Case<ir::RsqrtOp>([&](auto) { return awayFromPole(x, 0.5 * y / x.real, unit); })
      .Case<ir::TanOp>(
          [&](auto) { return 2 * error * (1 + std::abs(y)) >= 1 ? kInfinity : 4 * (1 + y * y) * x.terms; })
      .Case<ir::ReluOp>([&](auto) { return x.real < -error ? 0 : x.terms; })
      .Case<ir::SignOp>([&](auto) { return 2 * termsOfJump(x, std::abs(x.real), unit); })
      .Case<ir::FloorOp, ir::CeilOp>(
          [&](auto) { return termsOfJump(x, std::min(fraction, 1 - fraction), unit); })
      .Case<ir::RoundOp>([&](auto) { return termsOfJump(x, std::abs(fraction - 0.5), unit); })
      .Default([](Operation *) { return std::nan(""); });
}

//===----------------------------------------------------------------------===//
// Functions of several
//===----------------------------------------------------------------------===//

static double termsOfProduct(const Element &a, const Element &b, double unit) {
  return times(std::abs(a.real), b.terms) + times(a.terms, std::abs(b.real)) + unit * times(a.terms, b.terms);
}

static double termsOfQuotient(const Element &a, const Element &b, double y, double unit) {
  if (a.terms == 0)
    return 0;
  double least = std::abs(b.real) - unit * b.terms;
  return least <= 0 ? kInfinity : (a.terms + std::abs(y) * b.terms) / least;
}

/// Of a base that is not 0 or is surely 0.
static double termsOfPower(const Element &a, const Element &b, double y, double unit) {
  if (a.terms == 0)
    return 0;
  double error = unit * b.terms * std::abs(std::log(std::abs(a.real)));
  if (2 * unit * a.terms >= std::abs(a.real) || error > 1)
    return kInfinity;
  double relative = std::abs(b.real) * a.terms / std::abs(a.real) + error / unit;
  return 4 * std::abs(y) * relative;
}

/// Of the remainder, which is exact, and jumps where the quotient passes a whole number.
static double termsOfRemainder(const Element &a, const Element &b, double unit) {
  if (a.terms == 0 && b.terms == 0)
    return 0;
  const double quotient = a.real / b.real, terms = a.terms + std::abs(quotient) * b.terms;
  const double toJump = std::abs(quotient - std::round(quotient)) * std::abs(b.real);
  return unit * terms < toJump ? terms : terms + std::abs(b.real) / unit;
}

/// Without the rounding of the result; NaN of an op that is none of these.
static double termsOfSeveral(Operation *op, ArrayRef<Element> x, double y, double unit) {
  return TypeSwitch<Operation *, double>(op)
      .Case<ir::AddOp, ir::SubOp>([&](auto) { return x[0].terms + x[1].terms; })
      .Case<ir::MulOp>([&](auto) { return termsOfProduct(x[0], x[1], unit); })
      .Case<ir::FmaOp>([&](auto) { return termsOfProduct(x[0], x[1], unit) + x[2].terms; })
      .Case<ir::DivOp>([&](auto) { return termsOfQuotient(x[0], x[1], y, unit); })
      .Case<ir::PowOp>([&](auto) { return termsOfPower(x[0], x[1], y, unit); })
      .Case<ir::RemOp>([&](auto) { return termsOfRemainder(x[0], x[1], unit); })
      .Case<ir::MaxOp, ir::MinOp>([&](auto) { return std::max(x[0].terms, x[1].terms); })
      .Default([](Operation *) { return std::nan(""); });
}

//===----------------------------------------------------------------------===//
// Decisions and casts
//===----------------------------------------------------------------------===//

static bool isUnsure(const Element &integer) { return integer.terms != 0; }

static double termsOfComparison(const Element &a, const Element &b, bool isFloat, double unit) {
  bool unsure = isFloat ? maySwap(a, b, unit) : isUnsure(a) || isUnsure(b);
  return unsure ? kInfinity : 0;
}

/// An unsure choice may be off by the distance of what is chosen from.
static double termsOfChoice(const Element &condition, const Element &a, const Element &b, bool isFloat,
                            double unit) {
  const Element &chosen = condition.integer ? a : b;
  if (!isUnsure(condition))
    return chosen.terms;
  if (!isFloat)
    return a.integer == b.integer ? std::max(a.terms, b.terms) : kInfinity;
  return a.real == b.real ? std::max(a.terms, b.terms)
                          : std::max(a.terms, b.terms) + std::abs(a.real - b.real) / unit;
}

/// What was a small integer is exact.
static double termsOfCast(const Element &x, const Element &y, Type from, Type to) {
  if (!isa<FloatType>(from))
    return isUnsure(x) ? kInfinity : isa<FloatType>(to) && std::abs(y.real) > 2048 ? std::abs(y.real) : 0;
  if (isa<FloatType>(to))
    return x.terms == 0 ? 0 : x.terms * (errorUnit(from) / errorUnit(to)) + std::abs(y.real);
  double toJump = to.isInteger(1) ? std::abs(x.real) : std::abs(x.real - std::round(x.real));
  return termsOfJump(x, toJump, errorUnit(from)) > 0 ? kInfinity : 0;
}

/// Whether arithmetic stays within whole numbers that all types hold, and none of them is rounded.
static bool isExact(Operation *op, ArrayRef<Element> x, double y) {
  auto isWhole = [](double number) { return std::abs(number) <= 2048 && number == std::round(number); };
  return isa<ir::AddOp, ir::SubOp, ir::MulOp, ir::DivOp, ir::FloorOp>(op) && isWhole(y) &&
         llvm::all_of(x, [&](const Element &element) { return element.terms == 0 && isWhole(element.real); });
}

/// Terms of one element of a floating-point result.
static double termsOfNumber(Operation *op, ArrayRef<Element> x, double y, double unit) {
  if (!std::isfinite(y))
    return 0;
  if (isa<ir::SelectOp>(op))
    return termsOfChoice(x[0], x[1], x[2], /*isFloat=*/true, unit);
  if (isExact(op, x, y))
    return 0;
  return std::abs(y) + (x.size() == 1 ? termsOfUnary(op, x[0], y, unit) : termsOfSeveral(op, x, y, unit));
}

/// Whether an integer is sure.
static double termsOfInteger(Operation *op, ArrayRef<Element> x, bool fromFloat, double unit) {
  if (isa<ir::IsFiniteOp>(op))
    return 0;
  if (isa<ir::CompareOp>(op))
    return termsOfComparison(x[0], x[1], fromFloat, unit);
  if (isa<ir::SelectOp>(op))
    return termsOfChoice(x[0], x[1], x[2], /*isFloat=*/false, unit);
  return llvm::any_of(x, isUnsure) ? kInfinity : 0;
}

bool countElementTerms(Operation *op, ArrayRef<Tensor> operands, Tensor &result) {
  if (!op->hasTrait<ir::Pointwise>())
    return false;
  Type from = operands.back().type.getElementType(), to = result.type.getElementType();
  const bool fromFloat = isa<FloatType>(from);
  const double unit = fromFloat ? errorUnit(from) : 0;
  for (int64_t i = 0; i < result.size(); ++i) {
    SmallVector<Element> x;
    for (const Tensor &operand : operands)
      x.push_back(operand.elements[i]);
    Element &y = result.elements[i];
    if (isa<ir::CastOp>(op))
      y.terms = termsOfCast(x[0], y, from, to);
    else
      y.terms =
          result.isFloat() ? termsOfNumber(op, x, y.real, unit) : termsOfInteger(op, x, fromFloat, unit);
  }
  return true;
}

} // namespace gpuc::reference
