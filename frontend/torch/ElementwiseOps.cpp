//===- ElementwiseOps.cpp - Arithmetic, activations, comparisons ---------------===//
//
// Operands become of the type that PyTorch's result has, and are broadcast. Formulas of activations are those
// that ONNX's ops have too.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Formulas.h"
#include "frontend/onnx/ops/Activations.h"
#include "frontend/torch/OpTable.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace gpuc::torch {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor self(OpScope &op) { return op.operand("self", op.type()); }
Tensor other(OpScope &op) { return op.operand("other", op.type()); }

Tensor timesAlpha(OpScope &op, const Tensor &x) {
  const double alpha = op.number("alpha", 1);
  return alpha == 1 ? x : x * alpha;
}

template <const char *name> void lowerUnary(OpScope &op) { op.output(unary(name, self(op))); }
template <const char *name> void lowerBinary(OpScope &op) { op.output(binary(name, self(op), other(op))); }

/// Truth values are multiplied and added by logic.
void lowerMul(OpScope &op) {
  op.output(op.type() == DataType::i1 ? binary("and", self(op), other(op)) : self(op) * other(op));
}

void lowerAdd(OpScope &op) {
  op.output(op.type() == DataType::i1 ? binary("or", self(op), other(op))
                                      : self(op) + timesAlpha(op, other(op)));
}

Tensor truncated(const Tensor &x) { return select(compare("lt", x, 0), unary("ceil", x), unary("floor", x)); }

/// Float beats integer, a tensor beats a scalar of its kind, the wider of two else.
DataType promote(const Tensor &a, const Tensor &b) {
  if (a.isFloat() != b.isFloat())
    return a.isFloat() ? a.type() : b.type();
  if ((a.rank() == 0) != (b.rank() == 0))
    return a.rank() == 0 ? b.type() : a.type();
  if (sizeOf(a.type()) == sizeOf(b.type()) && a.type() != b.type())
    return a.isFloat() ? DataType::f32 : a.type() == DataType::i1 ? b.type() : a.type();
  return sizeOf(a.type()) > sizeOf(b.type()) ? a.type() : b.type();
}

template <const char *predicate> void lowerComparison(OpScope &op) {
  Tensor lhs = op.tensor("self");
  if (!lhs)
    return;
  if (!op.isTensor("other")) {
    // A number that the type does not have is compared as one.
    const double number = op.number("other", 0);
    const DataType type = lhs.isFloat() || number == static_cast<double>(static_cast<int64_t>(number))
                              ? lhs.type()
                              : DataType::f32;
    return op.output(compare(predicate, cast(lhs, type), number));
  }
  Tensor rhs = op.tensor("other");
  if (!rhs)
    return;
  const DataType type = promote(lhs, rhs);
  op.output(compare(predicate, cast(lhs, type), cast(rhs, type)));
}

void lowerPow(OpScope &op) {
  if (op.isTensor("exponent"))
    return op.output(binary("pow", self(op), op.operand("exponent", op.type())));
  Tensor x = self(op);
  const double exponent = op.number("exponent", 1);
  op.output(exponent == 1     ? x
            : exponent == 2   ? x * x
            : exponent == 3   ? x * x * x
            : exponent == 0.5 ? unary("sqrt", x)
                              : binary("pow", x, like(x, exponent)));
}

/// Of integers, which gpuc divides towards 0: one less where there is a remainder of the other sign.
Tensor flooredQuotient(const Tensor &x, const Tensor &y) {
  Tensor rest = binary("rem", x, y);
  Tensor isBelow = binary("and", compare("ne", rest, 0), compare("lt", binary("xor", rest, y), 0));
  return x / y - cast(isBelow, x.type());
}

void lowerDiv(OpScope &op) {
  const std::string rounding = op.text("rounding_mode", "");
  Tensor x = self(op), y = other(op);
  if (x && !x.isFloat() && !rounding.empty())
    return op.output(rounding == "floor" ? flooredQuotient(x, y) : x / y);
  op.output(rounding == "floor" ? unary("floor", x / y) : rounding == "trunc" ? truncated(x / y) : x / y);
}

/// The remainder has the sign of the divisor.
void lowerRemainder(OpScope &op) {
  Tensor x = self(op), y = other(op);
  op.output(x - (x && !x.isFloat() ? flooredQuotient(x, y) : unary("floor", x / y)) * y);
}

/// The angle of (x, y), by the quotient that is at most 1.
void lowerAtan2(OpScope &op) {
  Tensor y = self(op), x = other(op);
  Tensor isWide = compare("gt", unary("abs", x), unary("abs", y));
  Tensor below = select(isWide, x, y);
  Tensor angle = unary("atan", select(isWide, y, x) / select(compare("eq", below, 0), like(below, 1), below));
  Tensor turn = select(compare("lt", y, 0), like(y, -std::numbers::pi), like(y, std::numbers::pi));
  Tensor flat = angle + select(compare("lt", x, 0), turn, like(x, 0));
  op.output(select(isWide, flat, unary("sign", y) * (std::numbers::pi / 2) - angle));
}

void lowerClamp(OpScope &op) {
  Tensor x = self(op);
  if (op.isTensor("min") || op.isTensor("max")) {
    x = op.has("min") ? binary("max", x, op.operand("min", op.type())) : x;
    return op.output(op.has("max") ? binary("min", x, op.operand("max", op.type())) : x);
  }
  if (x && !x.isFloat()) {
    x = op.has("min") ? binary("max", x, like(x, op.number("min", 0))) : x;
    return op.output(op.has("max") ? binary("min", x, like(x, op.number("max", 0))) : x);
  }
  const double high = op.number("max", kInfinity); // It counts where the bounds are the wrong way round.
  op.output(onnx::clamp(x, std::min(op.number("min", -kInfinity), high), high));
}

void lowerHardtanh(OpScope &op) {
  op.output(onnx::clamp(self(op), op.number("min_val", -1), op.number("max_val", 1)));
}

Tensor activation(const char *name, const Tensor &x, double alpha = 0, double beta = 0) {
  onnx::Activation found = *onnx::activationNamed(name);
  return found.formula(x, alpha, beta);
}

Tensor hardSigmoid(const Tensor &x) { return activation("hardsigmoid", x, 1.0 / 6, 0.5); }

void lowerGelu(OpScope &op) {
  Tensor x = self(op);
  const std::string by = op.text("approximate", "none");
  op.output(by == "tanh" ? op.emitter.op("gelu", {x}, op.emitter.flag("approximate")) : unary("gelu", x));
}

/// scale · x where x is positive, else scale · alpha · (exp(input_scale · x) - 1).
void lowerElu(OpScope &op) {
  Tensor x = self(op);
  Tensor bounded = select(compare("gt", x, 0), like(x, 0), x);
  Tensor below = unary("expm1", bounded * op.number("input_scale", 1)) * op.number("alpha", 1);
  op.output(select(compare("gt", x, 0), x, below) * op.number("scale", 1));
}

/// Beyond the threshold PyTorch gives x itself, which softplus differs from by less than e^-threshold.
void lowerSoftplus(OpScope &op) {
  const double beta = op.number("beta", 1), threshold = op.number("threshold", 20);
  Tensor x = self(op);
  Tensor soft = activation("softplus", x * beta) / beta;
  op.output(select(compare("gt", x * beta, threshold), x, soft));
}

void lowerMish(OpScope &op) {
  Tensor x = self(op);
  op.output(x * unary("tanh", activation("softplus", x)));
}

void lowerWhere(OpScope &op) { op.output(select(op.tensor("condition"), self(op), other(op))); }

void lowerMaskedFill(OpScope &op) {
  op.output(select(op.tensor("mask"), op.operand("value", op.type()), self(op)));
}

void lowerDropout(OpScope &op) {
  const char *operand = op.has("input") ? "input" : "self";
  Tensor x = op.tensor(operand);
  const double p = op.number("p", 0.5);
  if (!op.flag("train", true) || p == 0)
    return op.output(x);
  if (op.wants(1))
    return void(op.fail("its mask is used, which gpuc does not keep"));
  op.output(op.emitter.op("dropout", {x},
                          {op.emitter.attribute("p", p), op.emitter.attribute("id", op.nextRandomId())}));
}

void lowerLogical(OpScope &op, const char *name) {
  auto isTrue = [](const Tensor &x) { return x && x.type() != DataType::i1 ? compare("ne", x, 0) : x; };
  op.output(binary(name, isTrue(op.tensor("self")), isTrue(op.tensor("other"))));
}

/// Of truth values, or bit by bit in the type that both are promoted to.
void lowerBitwise(OpScope &op, const char *name) {
  op.output(binary(name, op.operand("self", op.type()), op.operand("other", op.type())));
}

void lowerNot(OpScope &op) {
  Tensor x = op.tensor("self");
  op.output(x && x.type() != DataType::i1 ? compare("eq", x, 0) : unary("not", x));
}

void lowerCast(OpScope &op) { op.output(cast(op.tensor("self"), op.type())); }

constexpr char kAbs[] = "abs", kCeil[] = "ceil", kCos[] = "cos", kErf[] = "erf", kExp[] = "exp",
               kExpm1[] = "expm1", kFloor[] = "floor", kLog[] = "log", kLog1p[] = "log1p", kNeg[] = "neg",
               kRound[] = "round", kRsqrt[] = "rsqrt", kSigmoid[] = "sigmoid", kSign[] = "sign",
               kSilu[] = "silu", kSin[] = "sin", kSqrt[] = "sqrt", kTan[] = "tan", kTanh[] = "tanh",
               kAtan[] = "atan", kStop[] = "stop_gradient";
constexpr char kMax[] = "max", kMin[] = "min", kRem[] = "rem";
constexpr char kEq[] = "eq", kNe[] = "ne", kLt[] = "lt", kLe[] = "le", kGt[] = "gt", kGe[] = "ge";

template <const char *predicate> void addComparison(OpTable &table, const std::string &name) {
  for (const char *overload : {".Tensor", ".Scalar"})
    table[name + overload] = {lowerComparison<predicate>, {"self", "other"}};
}

template <const char *name> void addUnary(OpTable &table) {
  table[std::string(name) + ".default"] = {lowerUnary<name>, {"self"}};
}

template <Tensor (*function)(const Tensor &)> void addFunction(OpTable &table, const std::string &name) {
  table[name + ".default"] = {[](OpScope &op) { op.output(function(self(op))); }, {"self"}};
}

void addArithmetic(OpTable &table) {
  for (const char *overload : {".Tensor", ".Scalar"}) {
    table[std::string("add") + overload] = {lowerAdd, {"self", "other", "alpha"}};
    table[std::string("sub") + overload] = {
        [](OpScope &op) { op.output(self(op) - timesAlpha(op, other(op))); }, {"self", "other", "alpha"}};
    table[std::string("rsub") + overload] = {
        [](OpScope &op) { op.output(other(op) - timesAlpha(op, self(op))); }, {"self", "other", "alpha"}};
    table[std::string("mul") + overload] = {lowerMul, {"self", "other"}};
    table[std::string("div") + overload] = {lowerDiv, {"self", "other"}};
  }
  table["div.Tensor_mode"] = {lowerDiv, {"self", "other", "rounding_mode"}};
  for (const char *overload : {".Tensor_Scalar", ".Tensor_Tensor", ".Scalar"})
    table[std::string("pow") + overload] = {lowerPow, {"self", "exponent"}};
  for (const char *overload : {".Tensor", ".Scalar"}) {
    table[std::string("remainder") + overload] = {lowerRemainder, {"self", "other"}};
    table[std::string("fmod") + overload] = {lowerBinary<kRem>, {"self", "other"}};
  }
  table["trunc.default"] = {[](OpScope &op) { op.output(truncated(self(op))); }, {"self"}};
  table["log2.default"] = {[](OpScope &op) { op.output(unary("log", self(op)) / std::log(2.0)); }, {"self"}};
  table["log10.default"] = {[](OpScope &op) { op.output(unary("log", self(op)) / std::log(10.0)); },
                            {"self"}};
  addFunction<onnx::asin>(table, "asin"), addFunction<onnx::acos>(table, "acos");
  addFunction<onnx::sinh>(table, "sinh"), addFunction<onnx::cosh>(table, "cosh");
  addFunction<onnx::asinh>(table, "asinh"), addFunction<onnx::acosh>(table, "acosh");
  addFunction<onnx::atanh>(table, "atanh");
  table["atan2.default"] = {lowerAtan2, {"self", "other"}};
  table["exp2.default"] = {[](OpScope &op) { op.output(unary("exp", self(op) * std::log(2.0))); }, {"self"}};
  table["reciprocal.default"] = {[](OpScope &op) { op.output(1.0 / self(op)); }, {"self"}};
  table["square.default"] = {[](OpScope &op) {
                               Tensor x = self(op);
                               op.output(x * x);
                             },
                             {"self"}};
  for (const char *name : {"maximum.default", "max.other"})
    table[name] = {lowerBinary<kMax>, {"self", "other"}};
  for (const char *name : {"minimum.default", "min.other"})
    table[name] = {lowerBinary<kMin>, {"self", "other"}};
  table["clamp.default"] = {lowerClamp, {"self", "min", "max"}};
  table["clamp.Tensor"] = {lowerClamp, {"self", "min", "max"}};
  table["clamp_min.default"] = {lowerClamp, {"self", "min"}};
  table["clamp_max.default"] = {lowerClamp, {"self", "max"}};
}

void addActivations(OpTable &table) {
  table["relu.default"] = {[](OpScope &op) { op.output(activation("relu", self(op))); }, {"self"}};
  table["gelu.default"] = {lowerGelu, {"self", "approximate"}};
  table["hardtanh.default"] = {lowerHardtanh, {"self", "min_val", "max_val"}};
  table["relu6.default"] = {[](OpScope &op) { op.output(onnx::clamp(self(op), 0, 6)); }, {"self"}};
  table["hardsigmoid.default"] = {[](OpScope &op) { op.output(hardSigmoid(self(op))); }, {"self"}};
  table["hardswish.default"] = {[](OpScope &op) {
                                  Tensor x = self(op);
                                  op.output(x * hardSigmoid(x));
                                },
                                {"self"}};
  table["leaky_relu.default"] = {
      [](OpScope &op) { op.output(activation("leakyrelu", self(op), op.number("negative_slope", 0.01))); },
      {"self", "negative_slope"}};
  table["elu.default"] = {lowerElu, {"self", "alpha", "scale", "input_scale"}};
  table["softplus.default"] = {lowerSoftplus, {"self", "beta", "threshold"}};
  table["_prelu_kernel.default"] = {[](OpScope &op) {
                                      Tensor x = self(op);
                                      op.output(select(compare("gt", x, 0), x, x * op.tensor("weight")));
                                    },
                                    {"self", "weight"}};
  table["mish.default"] = {lowerMish, {"self"}};
  table["log_sigmoid.default"] = {
      [](OpScope &op) { op.output(unary("neg", activation("softplus", unary("neg", self(op))))); }, {"self"}};
}

/// A number everywhere, in the shape that PyTorch has found.
void lowerFull(OpScope &op, double value) { op.output(op.emitter.constant(op.shape(), op.type(), value)); }

void addFull(OpTable &table) {
  const std::vector<std::string> like = {"self", "dtype", "layout", "device", "pin_memory", "memory_format"};
  std::vector<std::string> made = like, valued = like, valuedOfSize = like;
  made.push_back("size");
  valued.push_back("fill_value");
  valuedOfSize.insert(valuedOfSize.end(), {"size", "fill_value"});
  table["zeros_like.default"] = {[](OpScope &op) { lowerFull(op, 0); }, like};
  table["ones_like.default"] = {[](OpScope &op) { lowerFull(op, 1); }, like};
  table["full_like.default"] = {[](OpScope &op) { lowerFull(op, op.number("fill_value", 0)); }, valued};
  table["new_zeros.default"] = {[](OpScope &op) { lowerFull(op, 0); }, made};
  table["new_ones.default"] = {[](OpScope &op) { lowerFull(op, 1); }, made};
  table["new_full.default"] = {[](OpScope &op) { lowerFull(op, op.number("fill_value", 0)); }, valuedOfSize};
  for (const char *name : {"fill.Scalar", "fill.Tensor"})
    table[name] = {[](OpScope &op) { op.output(broadcastTo(op.operand("value", op.type()), op.shape())); },
                   {"self", "value"}};
}

void addPredicates(OpTable &table) {
  table["isnan.default"] = {[](OpScope &op) {
                              Tensor x = op.tensor("self");
                              op.output(compare("ne", x, x));
                            },
                            {"self"}};
  table["isinf.default"] = {
      [](OpScope &op) { op.output(compare("eq", unary("abs", op.tensor("self")), kInfinity)); }, {"self"}};
  table["isfinite.default"] = {[](OpScope &op) { op.output(unary("is_finite", op.tensor("self"))); },
                               {"self"}};
}

void addLogic(OpTable &table) {
  const std::vector<std::string> two = {"self", "other"};
  table["logical_and.default"] = {[](OpScope &op) { lowerLogical(op, "and"); }, two};
  table["logical_or.default"] = {[](OpScope &op) { lowerLogical(op, "or"); }, two};
  table["logical_xor.default"] = {[](OpScope &op) { lowerLogical(op, "xor"); }, two};
  for (const char *kind : {"Tensor", "Scalar"}) {
    table[std::string("bitwise_and.") + kind] = {[](OpScope &op) { lowerBitwise(op, "and"); }, two};
    table[std::string("bitwise_or.") + kind] = {[](OpScope &op) { lowerBitwise(op, "or"); }, two};
    table[std::string("bitwise_xor.") + kind] = {[](OpScope &op) { lowerBitwise(op, "xor"); }, two};
  }
  for (const char *name : {"logical_not.default", "bitwise_not.default"})
    table[name] = {lowerNot, {"self"}};
}

/// What gives its operand back, if not in another type.
void addIdentities(OpTable &table) {
  for (const char *name : {"alias.default", "lift_fresh_copy.default"})
    table[name] = {lowerCast, {"self"}};
  for (const char *name : {"clone.default", "contiguous.default"})
    table[name] = {lowerCast, {"self", "memory_format"}};
  for (const char *name : {"_to_copy.default", "to.dtype", "to.dtype_layout"})
    table[name] = {
        lowerCast,
        {"self", "dtype", "layout", "device", "pin_memory", "non_blocking", "copy", "memory_format"}};
  table["native_dropout.default"] = {lowerDropout, {"input", "p", "train"}};
  table["dropout.default"] = {lowerDropout, {"input", "p", "train"}};
}

} // namespace

void addElementwise(OpTable &table) {
  addArithmetic(table);
  addActivations(table);
  addIdentities(table);
  addFull(table);
  addPredicates(table);
  addLogic(table);
  addUnary<kAbs>(table), addUnary<kAtan>(table), addUnary<kCeil>(table), addUnary<kCos>(table);
  addUnary<kErf>(table), addUnary<kExp>(table), addUnary<kExpm1>(table), addUnary<kFloor>(table);
  addUnary<kLog>(table), addUnary<kLog1p>(table), addUnary<kNeg>(table), addUnary<kRound>(table);
  addUnary<kRsqrt>(table), addUnary<kSigmoid>(table), addUnary<kSign>(table), addUnary<kSilu>(table);
  addUnary<kSin>(table), addUnary<kSqrt>(table), addUnary<kTan>(table), addUnary<kTanh>(table);
  table["detach.default"] = {lowerUnary<kStop>, {"self"}};
  addComparison<kEq>(table, "eq"), addComparison<kNe>(table, "ne"), addComparison<kLt>(table, "lt");
  addComparison<kLe>(table, "le"), addComparison<kGt>(table, "gt"), addComparison<kGe>(table, "ge");
  table["where.self"] = {lowerWhere, {"condition", "self", "other"}};
  for (const char *overload : {"masked_fill.Scalar", "masked_fill.Tensor"})
    table[overload] = {lowerMaskedFill, {"self", "mask", "value"}};
}

} // namespace gpuc::torch
