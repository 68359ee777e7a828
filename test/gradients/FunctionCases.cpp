//===- FunctionCases.cpp - exp to clamp --------------------------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

namespace {
/// A function of one number, on an interval on which it is smooth but for single points.
struct Function {
  std::string op;
  double low = 0, high = 0;
  /// Inputs at which kernels are compared; NaN and infinities come by themselves.
  std::vector<double> special = {};
  double inner = 0; ///< Case::inner
  std::string attributes = "";
  std::string name = "";
};
} // namespace

static Case caseOf(const Function &function, const std::string &name, Input x,
                   Derivatives derivatives = Derivatives::second) {
  std::string body = "%y = gpuc." + function.op + " %x0 " + function.attributes + " : " + tensor(x.type);
  Case result{"gpuc." + function.op, function.name + name, {x}, body, {{"%y", x.type}}, derivatives};
  result.inner = function.inner;
  return result;
}

static const std::vector<Function> &functions() {
  static const std::vector<Function> all = {
      {"exp", -2, 2, {0, -0.0, 1, 88, 89, -87, -104, 709, 710, -745, -746}},
      {"expm1", -2, 2, {0, -0.0, 1e-10, -1e-10, 1e-3, -1e-3, 50, -50, 710}},
      {"log", 0.3, 3, {0, -0.0, -1, 1, 1e-30, 1e30, 1.0000001, 0.9999999}},
      {"log1p", -0.6, 2, {0, -0.0, -1, -2, 1e-10, -1e-10, 1e-3, 1e30}},
      {"sqrt", 0.3, 3, {0, -0.0, -1, 1, 2, 1e-30, 1e30}},
      {"rsqrt", 0.3, 3, {0, -0.0, -1, 1, 2, 1e-30, 1e30}},
      {"sin", -3, 3, {0, -0.0, 1, 3.14159265, 1.57079633, 100, -1000}, 1},
      {"cos", -3, 3, {0, -0.0, 1, 3.14159265, 1.57079633, 100, -1000}, 1},
      {"tan", -1.2, 1.2, {0, -0.0, 1, 3.0, -2.5, 100}},
      {"atan", -3, 3, {0, -0.0, 1, -1, 1e-10, 1e10}},
      {"tanh", -2, 2, {0, -0.0, 1e-10, 1e-3, 0.5, 10, -20, 100}},
      {"sigmoid", -3, 3, {0, -0.0, 20, -20, 100, -80, -1000}},
      {"erf", -2, 2, {0, -0.0, 1e-10, 1e-3, 0.5, 0.9, 2, 4, 6, -10}},
      {"relu", -1, 1, {0, -0.0, 1, -1}},
      {"leaky_relu", -1, 1, {0, -0.0, 1, -1}},
      {"leaky_relu", -1, 1, {0, 1, -1}, 0, "{slope = 0.25 : f64}", "slope_"},
      {"gelu", -2, 2, {0, -0.0, 1, -1, 5, -3, 20}, 1},
      {"gelu", -2, 2, {0, -0.0, 1, -1, 5, -3, 20}, 1, "approximate", "tanh_"},
      {"silu", -2, 2, {0, -0.0, 1, -1, 20, -20}},
      {"clamp", -2, 2, {0, -0.0, -0.5, 0.75, 1, -1}, 0, "low -0.5 high 0.75"},
  };
  return all;
}

static Case kink(const Function &function, std::vector<double> points, std::vector<double> slopes) {
  Input x{std::to_string(points.size()) + "x$T", 0, 0, points};
  Case result = caseOf(function, "kink", x, Derivatives::convention);
  result.expected = slopes;
  return result;
}

void addFunctionCases(Cases &cases) {
  for (const Function &function : functions()) {
    for (const std::string &shape : {"3x5", "2x1x7", "1", ""})
      cases.push_back(caseOf(function, "shape_" + shape, {real(shape), function.low, function.high}));
    // Wider than any vector and no multiple of one.
    cases.push_back(caseOf(function, "long", {"1037x$T", function.low, function.high}, Derivatives::none));
    Input special{"", 0, 0, function.special};
    special.values.insert(special.values.end(), {nan, inf, -inf});
    if (function.op == "gelu" || function.op == "silu")
      special.values
          .pop_back(); // x times a factor that is 0 at -∞: NaN or -0, as the definition happens to be written
    special.type = std::to_string(special.values.size()) + "x$T";
    cases.push_back(caseOf(function, "special", special, Derivatives::none));
  }
  // PyTorch's choices where there is no derivative.
  cases.push_back(kink({"relu"}, {0}, {0}));
  cases.push_back(kink({"leaky_relu"}, {0}, {0.01}));
  Function clamp{"clamp"};
  clamp.attributes = "low -0.5 high 0.75";
  cases.push_back(kink(clamp, {-0.5, 0.75, 0, 2}, {0, 0, 1, 0}));
}

} // namespace gpuc::gradients
