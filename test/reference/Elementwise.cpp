//===- Elementwise.cpp - Arithmetic, functions and activations ---------------===//

#include "test/reference/OpTable.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace gpuc::reference {

using Integer = int64_t;

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

template <typename Op, typename Real> static void addReal(OpTable &table, Real real) {
  table.add<Op>([real](Op op, Operands x) {
    Tensor result(x[0].type);
    for (int64_t i = 0; i < result.size(); ++i) {
      if constexpr (std::is_invocable_v<Real, Op, double>)
        result.elements[i].real = real(op, x[0].elements[i].real);
      else if constexpr (std::is_invocable_v<Real, double>)
        result.elements[i].real = real(x[0].elements[i].real);
      else if constexpr (std::is_invocable_v<Real, double, double>)
        result.elements[i].real = real(x[0].elements[i].real, x[1].elements[i].real);
      else
        result.elements[i].real = real(x[0].elements[i].real, x[1].elements[i].real, x[2].elements[i].real);
    }
    return result;
  });
}

/// `whole` takes integers as numbers; what it gives is wrapped to the type.
template <typename Op, typename Real, typename Whole>
static void addNumeric(OpTable &table, Real real, Whole whole) {
  table.add<Op>([real, whole](Op op, Operands x) {
    Tensor result(x[0].type);
    Type element = result.type.getElementType();
    for (int64_t i = 0; i < result.size(); ++i) {
      const Element &a = x[0].elements[i];
      Element &y = result.elements[i];
      if constexpr (std::is_invocable_v<Real, double>) {
        result.isFloat() ? void(y.real = real(a.real)) : void(y.integer = wrapped(whole(a.integer), element));
      } else {
        const Element &b = x[1].elements[i];
        result.isFloat() ? void(y.real = real(a.real, b.real))
                         : void(y.integer = wrapped(whole(a.integer, b.integer), element));
      }
    }
    return result;
  });
}

/// Unsigned arithmetic wraps; signed would be undefined.
static uint64_t bits(Integer x) { return static_cast<uint64_t>(x); }

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b); // +0 above -0
}
static double smaller(double a, double b) { return -larger(-a, -b); }

static Integer quotient(Integer a, Integer b) {
  if (b == 0)
    return 0;
  return b == -1 ? Integer(-bits(a)) : a / b;
}
static Integer remainder(Integer a, Integer b) { return b == 0 || b == -1 ? 0 : a % b; }

static double signOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

static void addArithmetic(OpTable &table) {
  addNumeric<ir::AddOp>(table, std::plus<double>(),
                        [](Integer a, Integer b) { return Integer(bits(a) + bits(b)); });
  addNumeric<ir::SubOp>(table, std::minus<double>(),
                        [](Integer a, Integer b) { return Integer(bits(a) - bits(b)); });
  addNumeric<ir::MulOp>(table, std::multiplies<double>(),
                        [](Integer a, Integer b) { return Integer(bits(a) * bits(b)); });
  addNumeric<ir::DivOp>(table, std::divides<double>(), quotient);
  addNumeric<ir::RemOp>(table, [](double a, double b) { return std::fmod(a, b); }, remainder);
  addNumeric<ir::MaxOp>(table, larger, [](Integer a, Integer b) { return std::max(a, b); });
  addNumeric<ir::MinOp>(table, smaller, [](Integer a, Integer b) { return std::min(a, b); });
  addReal<ir::PowOp>(table, [](double a, double b) { return std::pow(a, b); });
  addReal<ir::FmaOp>(table, [](double a, double b, double c) { return std::fma(a, b, c); });
  addNumeric<ir::NegOp>(table, std::negate<double>(), [](Integer a) { return Integer(-bits(a)); });
  addNumeric<ir::AbsOp>(
      table, [](double a) { return std::fabs(a); }, [](Integer a) { return a < 0 ? Integer(-bits(a)) : a; });
  addNumeric<ir::SignOp>(table, signOf, [](Integer a) { return Integer((a > 0) - (a < 0)); });
  addReal<ir::FloorOp>(table, [](double a) { return std::floor(a); });
  addReal<ir::CeilOp>(table, [](double a) { return std::ceil(a); });
  addReal<ir::RoundOp>(table,
                       [](double a) { return std::nearbyint(a); }); // in the default mode: ties to even
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static double gelu(ir::GeluOp op, double x) {
  if (!op.getApproximate())
    return x * (0.5 * std::erfc(-x / std::numbers::sqrt2)); // Φ(x) without cancellation
  double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

static double clamp(ir::ClampOp op, double x) {
  return smaller(larger(x, op.getLow().convertToDouble()), op.getHigh().convertToDouble());
}

static void addFunctions(OpTable &table) {
  addReal<ir::ExpOp>(table, [](double x) { return std::exp(x); });
  addReal<ir::Expm1Op>(table, [](double x) { return std::expm1(x); });
  addReal<ir::LogOp>(table, [](double x) { return std::log(x); });
  addReal<ir::Log1pOp>(table, [](double x) { return std::log1p(x); });
  addReal<ir::SqrtOp>(table, [](double x) { return std::sqrt(x); });
  addReal<ir::RsqrtOp>(table, [](double x) { return 1 / std::sqrt(x); });
  addReal<ir::SinOp>(table, [](double x) { return std::sin(x); });
  addReal<ir::CosOp>(table, [](double x) { return std::cos(x); });
  addReal<ir::TanOp>(table, [](double x) { return std::tan(x); });
  addReal<ir::AtanOp>(table, [](double x) { return std::atan(x); });
  addReal<ir::TanhOp>(table, [](double x) { return std::tanh(x); });
  addReal<ir::SigmoidOp>(table, sigmoid);
  addReal<ir::ErfOp>(table, [](double x) { return std::erf(x); });
  addReal<ir::ReluOp>(table, [](double x) { return larger(x, 0); });
  addReal<ir::LeakyReluOp>(
      table, [](ir::LeakyReluOp op, double x) { return x > 0 ? x : x * op.getSlope().convertToDouble(); });
  addReal<ir::GeluOp>(table, gelu);
  addReal<ir::SiluOp>(table, [](double x) { return x * sigmoid(x); });
  addReal<ir::ClampOp>(table, clamp);
}

void addElementwiseOps(OpTable &table) {
  addArithmetic(table);
  addFunctions(table);
}

} // namespace gpuc::reference
