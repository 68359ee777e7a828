//===- ArithmeticCases.cpp - add to round ------------------------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

static Case binary(const std::string &op, const std::string &name, Input lhs, Input rhs,
                   Derivatives derivatives = Derivatives::second) {
  std::string body = "%y = gpuc." + op + " %x0, %x1 : " + tensor(lhs.type);
  Output y{"%y", lhs.type};
  return {"gpuc." + op, name, {lhs, rhs}, body, {y}, derivatives};
}

static Case unary(const std::string &op, const std::string &name, Input x,
                  Derivatives derivatives = Derivatives::second) {
  return {"gpuc." + op,     name,       {x}, "%y = gpuc." + op + " %x0 : " + tensor(x.type),
          {{"%y", x.type}}, derivatives};
}

/// Each pair of special numbers once.
static void addSpecialPairs(Cases &cases, const std::string &op) {
  const std::vector<double> special = {nan, inf, -inf, 0.0, -0.0, 1.0, -2.5};
  std::vector<double> lhs, rhs;
  for (double a : special)
    for (double b : special) {
      lhs.push_back(a);
      rhs.push_back(b);
    }
  cases.push_back(binary(op, "special", {"49x$T", 0, 0, lhs}, {"49x$T", 0, 0, rhs}, Derivatives::none));
}

/// Values at the ends of the types, so that sums and products wrap, and every kind of division.
static void addIntegerPairs(Cases &cases, const std::string &op) {
  cases.push_back(binary(op, "i32", {"8xi32", 0, 0, {7, -7, 5, -2147483648.0, 2147483647, 0, 100000, -1}},
                         {"8xi32", 0, 0, {2, 2, 0, -1, 1, -3, 100000, -1}}, Derivatives::none));
  cases.push_back(binary(op, "i64", {"2x3xi64", -1e9, 1e9}, {"2x3xi64", -30, 30}, Derivatives::none));
  cases.push_back(binary(op, "i8", {"5xi8", 0, 0, {-128, 127, 100, -7, 3}},
                         {"5xi8", 0, 0, {-1, 2, 100, 2, 0}}, Derivatives::none));
  cases.push_back(binary(op, "ui8", {"5xui8", 0, 0, {255, 200, 3, 0, 7}},
                         {"5xui8", 0, 0, {2, 100, 5, 0, 255}}, Derivatives::none));
}

static void addRounding(Cases &cases) {
  for (const char *op : {"sign", "floor", "ceil", "round"}) {
    cases.push_back(unary(op, "matrix", {"3x5x$T", -3, 3}));
    cases.push_back(unary(op, "special",
                          {"11x$T", 0, 0, {nan, inf, -inf, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e10}},
                          Derivatives::none));
  }
}

static void addPower(Cases &cases) {
  cases.push_back(binary("pow", "positive", {"3x5x$T", 0.3, 2}, {"3x5x$T", -2, 2}));
  cases.push_back(binary("pow", "scalar", {"$T", 0.3, 2}, {"$T", -2, 2}));
  // A negative base has a power by whole exponents only, so that there is no derivative by the exponent.
  cases.push_back(
      binary("pow", "negative", {"4x$T", -2, -0.5}, {"4x$T", 0, 0, {2, 3, -1, 0}, /*differentiate=*/false}));
  // Left of 0 there is no derivative by the exponent either, so that no difference quotient shows the mixed
  // one.
  Input zeros{"3x$T", 0, 0, {0, 0, 0}}, whole{"3x$T", 0, 0, {2, 3, 4}};
  cases.push_back(binary("pow", "zero", zeros, whole, Derivatives::first));
  whole.differentiate = false;
  cases.push_back(binary("pow", "zero_base", zeros, whole));
  Case atZero = binary("pow", "zero_to_zero", {"2x$T", 0, 0, {0, 0}},
                       {"2x$T", 0, 0, {0, 1}, /*differentiate=*/false}, Derivatives::convention);
  atZero.expected = {0, 1};
  cases.push_back(atZero);
  addSpecialPairs(cases, "pow");
}

static void addFma(Cases &cases) {
  for (const std::string &shape : {"3x5", "1", ""}) {
    Input x{real(shape)};
    cases.push_back({"gpuc.fma",
                     "shape_" + shape,
                     {x, x, x},
                     "%y = gpuc.fma %x0, %x1, %x2 : " + tensor(x.type),
                     {{"%y", x.type}}});
  }
}

void addArithmeticCases(Cases &cases) {
  for (const char *op : {"add", "sub", "mul", "div", "max", "min", "rem"}) {
    bool divides = std::string(op) == "div" || std::string(op) == "rem";
    // Quotients stay between 0.2 and 4, away from the jumps of rem by the seed's choice.
    Input lhs{"", 0.6, 1.9}, rhs = divides ? Input{"", 0.5, 2.9} : Input{"", -1, 3};
    for (const std::string &shape : {"3x5", "2x1x7", "1", ""}) {
      lhs.type = rhs.type = real(shape);
      cases.push_back(binary(op, "shape_" + shape, lhs, rhs));
    }
    addSpecialPairs(cases, op);
    addIntegerPairs(cases, op);
  }
  // At a tie of two each gets half, which is what central differences give.
  for (const char *op : {"max", "min"})
    cases.push_back(
        binary(op, "tie", {"3x$T", 0, 0, {1, 2, 3}}, {"3x$T", 0, 0, {1, 5, 3}}, Derivatives::first));
  addPower(cases);
  addFma(cases);
  for (const char *op : {"neg", "abs"}) {
    cases.push_back(unary(op, "matrix", {"3x5x$T"}));
    cases.push_back(unary(op, "scalar", {"$T"}));
    cases.push_back(unary(op, "special", {"5x$T", 0, 0, {nan, inf, -inf, 0.0, -0.0}}, Derivatives::none));
  }
  for (const char *op : {"neg", "abs", "sign"}) {
    cases.push_back(unary(op, "i32", {"4xi32", 0, 0, {5, -5, 0, -2147483648.0}}, Derivatives::none));
    cases.push_back(unary(op, "ui8", {"3xui8", 0, 0, {5, 0, 255}}, Derivatives::none));
  }
  Case kink = unary("abs", "kink", {"1x$T", 0, 0, {0}}, Derivatives::convention);
  kink.expected = {0};
  cases.push_back(kink);
  addRounding(cases);
}

} // namespace gpuc::gradients
