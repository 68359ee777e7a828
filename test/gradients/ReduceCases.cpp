//===- ReduceCases.cpp - Reductions, argmax and running sums -----------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

static Case reduction(const std::string &op, const std::string &name, Input x, const std::string &dims,
                      const std::string &to, Derivatives derivatives = Derivatives::second) {
  std::string body = "%y = gpuc." + op + " %x0 dims " + dims + " : (" + tensor(x.type) + ") -> " + tensor(to);
  return {"gpuc." + op, name, {x}, body, {{"%y", to}}, derivatives};
}

/// Whatever is folded, in every place that a dimension can have.
static void addPlaces(Cases &cases, const std::string &op) {
  struct Place {
    const char *name, *from, *dims, *to;
  };
  for (Place place : {Place{"rows", "3x5x$T", "[0]", "5x$T"},
                      {"columns", "3x5x$T", "[1]", "3x$T"},
                      {"all", "3x5x$T", "[0, 1]", "$T"},
                      {"outer_two", "2x3x4x$T", "[0, 2]", "3x$T"},
                      {"middle", "2x3x4x$T", "[1]", "2x4x$T"},
                      {"extent_1", "1x7x$T", "[0]", "7x$T"},
                      {"to_extent_1", "7x1x$T", "[0]", "1x$T"},
                      {"nothing", "3x$T", "[]", "3x$T"}})
    cases.push_back(reduction(op, place.name, {place.from, 0.4, 1.6}, place.dims, place.to));
  // Wider than vectors and blocks, and no multiple of them.
  double low = op == "prod" ? 0.99 : -1, high = op == "prod" ? 1.01 : 1;
  cases.push_back(reduction(op, "long", {"1037x$T", low, high}, "[0]", "$T", Derivatives::none));
  cases.push_back(reduction(op, "long_columns", {"7x1037x$T", low, high}, "[1]", "7x$T", Derivatives::none));
  cases.push_back(reduction(op, "long_rows", {"259x37x$T", low, high}, "[0]", "37x$T", Derivatives::none));
}

static void addExtremes(Cases &cases, const std::string &op) {
  // Of two that are equal each gets half, of three a third; only for two do central differences agree.
  cases.push_back(
      reduction(op, "tie_of_two", {"2x3x$T", 0, 0, {1, 1, 1, 1, 5, 5}}, "[0]", "3x$T", Derivatives::first));
  Case three = reduction(op, "tie_of_three", {"3x$T", 0, 0, {2, 2, 2}}, "[0]", "$T", Derivatives::convention);
  three.expected = {1.0 / 3, 1.0 / 3, 1.0 / 3};
  cases.push_back(three);
  cases.push_back(reduction(op, "special",
                            {"3x4x$T", 0, 0, {nan, 1, 2, 3, inf, 1, -inf, 2, -inf, -inf, -inf, -inf}}, "[1]",
                            "3x$T", Derivatives::none));
}

/// Of nothing: 0 or 1. No plan has buffers without bytes, so that what is empty stands inside of the
/// function.
static void addEmpty(Cases &cases, const std::string &op) {
  std::string nothing = "%e = gpuc.slice %x0 starts [0, 1] limits [-1, 1] strides [1, 1] : (tensor<2x3x$T>) "
                        "-> tensor<2x0x$T>\n";
  std::string body = "%s = gpuc." + op + " %e dims [1] : (tensor<2x0x$T>) -> tensor<2x$T>\n";
  cases.push_back({"gpuc." + op,
                   "empty",
                   {{"2x3x$T"}, {"2x$T"}},
                   nothing + body + "%y = gpuc.add %s, %x1 : tensor<2x$T>",
                   {{"%y", "2x$T"}}});
}

static void addIntegers(Cases &cases) {
  for (const char *op : {"sum", "prod", "reduce_max", "reduce_min"}) {
    cases.push_back(reduction(op, "i32", {"3x5xi32", -100000, 100000}, "[1]", "3xi32", Derivatives::none));
    cases.push_back(reduction(op, "i64", {"3x5xi64", -9, 9}, "[0]", "5xi64", Derivatives::none));
    cases.push_back(reduction(op, "ui8", {"40xui8", 0, 255}, "[0]", "ui8", Derivatives::none));
  }
}

static void addArgmax(Cases &cases) {
  auto add = [&](const std::string &name, Input x, const std::string &dim, const std::string &to) {
    cases.push_back({"gpuc.argmax",
                     name,
                     {x},
                     "%y = gpuc.argmax %x0 dim " + dim + " : (" + tensor(x.type) + ") -> " + tensor(to),
                     {{"%y", to}},
                     Derivatives::none});
  };
  add("columns", {"3x5x$T"}, "1", "3xi64");
  add("rows", {"3x5x$T"}, "0", "5xi64");
  add("tie", {"2x3x$T", 0, 0, {1, 2, 2, 3, 3, 3}}, "1", "2xi64");
  add("special", {"3x3x$T", 0, 0, {1, nan, nan, -inf, -inf, -inf, inf, inf, 1}}, "1", "3xi64");
  add("i32", {"4x7xi32", -9, 9}, "1", "4xi64");
  add("long", {"3x1037x$T"}, "1", "3xi64");
  add("extent_1", {"3x1x$T"}, "1", "3xi64");
}

static void addCumsum(Cases &cases) {
  auto add = [&](const std::string &name, Input x, const std::string &dim, Derivatives derivatives) {
    cases.push_back({"gpuc.cumsum",
                     name,
                     {x},
                     "%y = gpuc.cumsum %x0 dim " + dim + " : " + tensor(x.type),
                     {{"%y", x.type}},
                     derivatives});
  };
  add("rows", {"3x5x$T"}, "0", Derivatives::second);
  add("columns", {"3x5x$T"}, "1", Derivatives::second);
  add("middle", {"2x3x4x$T"}, "1", Derivatives::second);
  add("extent_1", {"1x$T"}, "0", Derivatives::second);
  add("i32", {"3x5xi32", -9, 9}, "1", Derivatives::none);
  add("long", {"1037x$T"}, "0", Derivatives::none);
}

/// Of one rank, as which the cases run.
static void addAllReduce(Cases &cases) {
  auto add = [&](const std::string &name, Input x, Derivatives derivatives) {
    cases.push_back({"gpuc.all_reduce",
                     name,
                     {x},
                     "%y = gpuc.all_reduce %x0 : " + tensor(x.type),
                     {{"%y", x.type}},
                     derivatives});
  };
  add("matrix", {"3x5x$T"}, Derivatives::second);
  add("special", {"4x$T", 0, 0, {nan, inf, -inf, -0.0}}, Derivatives::none);
  add("i64", {"3xi64", -9, 9}, Derivatives::none);
}

/// Of one rank, which has all.
static void addShares(Cases &cases) {
  auto add = [&](const std::string &op, const std::string &name, Input x, const std::string &result) {
    cases.push_back({"gpuc." + op,
                     name,
                     {x},
                     "%y = gpuc." + op + " %x0 ranks 1 : (" + tensor(x.type) + ") -> " + tensor(result),
                     {{"%y", result}},
                     Derivatives::none});
  };
  add("reduce_scatter", "matrix", {"3x5x$T"}, "15x$T");
  add("reduce_scatter", "special", {"4x$T", 0, 0, {nan, inf, -inf, -0.0}}, "4x$T");
  add("reduce_scatter", "i64", {"3xi64", -9, 9}, "3xi64");
  add("all_gather", "matrix", {"15x$T"}, "3x5x$T");
  add("all_gather", "i64", {"3xi64", -9, 9}, "3xi64");
  add("reduce_to_owners", "matrix", {"3x5x$T"}, "3x5x$T");
  add("reduce_to_owners", "special", {"4x$T", 0, 0, {nan, inf, -inf, -0.0}}, "4x$T");
  add("gather_from_owners", "matrix", {"3x5x$T"}, "3x5x$T");
}

void addReduceCases(Cases &cases) {
  for (const char *op : {"sum", "mean", "prod", "reduce_max", "reduce_min"})
    addPlaces(cases, op);
  addEmpty(cases, "sum");
  addEmpty(cases, "prod");
  cases.push_back(reduction("sum", "special", {"3x2x$T", 0, 0, {nan, 1, inf, 1, inf, -inf}}, "[1]", "3x$T",
                            Derivatives::none));
  // With one zero only its own derivative is not zero, with two all are; the second derivatives tell them
  // apart.
  cases.push_back(reduction("prod", "one_zero", {"4x$T", 0, 0, {2, 0, 3, -1.5}}, "[0]", "$T"));
  cases.push_back(reduction("prod", "two_zeros", {"2x4x$T", 0, 0, {2, 0, 3, 0, 1, 2, 0, 4}}, "[1]", "2x$T"));
  addExtremes(cases, "reduce_max");
  addExtremes(cases, "reduce_min");
  addIntegers(cases);
  addArgmax(cases);
  addCumsum(cases);
  addAllReduce(cases);
  addShares(cases);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

static Case matmul(const std::string &name, const std::string &lhs, const std::string &rhs,
                   const std::string &result, bool transposeLhs, bool transposeRhs,
                   Derivatives derivatives = Derivatives::second) {
  std::string body = std::string("%y = gpuc.matmul ") + (transposeLhs ? "transpose " : "") + "%x0, " +
                     (transposeRhs ? "transpose " : "") + "%x1 : (" + tensor(lhs) + ", " + tensor(rhs) +
                     ") -> " + tensor(result);
  return {"gpuc.matmul", name, {{lhs}, {rhs}}, body, {{"%y", result}}, derivatives};
}

void addContractCases(Cases &cases) {
  cases.push_back(matmul("plain", "3x4x$T", "4x5x$T", "3x5x$T", false, false));
  cases.push_back(matmul("transpose_lhs", "4x3x$T", "4x5x$T", "3x5x$T", true, false));
  cases.push_back(matmul("transpose_rhs", "3x4x$T", "5x4x$T", "3x5x$T", false, true));
  cases.push_back(matmul("transpose_both", "4x3x$T", "5x4x$T", "3x5x$T", true, true));
  cases.push_back(matmul("batched", "2x3x4x$T", "2x4x1x$T", "2x3x1x$T", false, false));
  cases.push_back(matmul("batched_transposed", "2x4x3x$T", "2x1x4x$T", "2x3x1x$T", true, true));
  cases.push_back(matmul("shared_rhs", "2x3x4x$T", "4x5x$T", "2x3x5x$T", false, false));
  cases.push_back(matmul("shared_rhs_transposed", "2x2x3x4x$T", "5x4x$T", "2x2x3x5x$T", false, true));
  cases.push_back(matmul("shared_rhs_of_single_rows", "3x1x4x$T", "4x1x$T", "3x1x1x$T", false, false));
  cases.push_back(matmul("outer_product", "3x1x$T", "1x5x$T", "3x5x$T", false, false));
  cases.push_back(matmul("outer_products_transposed", "2x1x3x$T", "2x4x1x$T", "2x3x4x$T", true, true));
  cases.push_back(matmul("outer_products_of_one_vector", "2x3x1x$T", "4x1x$T", "2x3x4x$T", false, true));
  cases.push_back(matmul("inner_product", "1x7x$T", "7x1x$T", "1x1x$T", false, false));
  for (bool lhs : {false, true})
    for (bool rhs : {false, true})
      cases.push_back(matmul(std::string("large") + (lhs ? "_lhs" : "") + (rhs ? "_rhs" : ""),
                             lhs ? "129x65x$T" : "65x129x$T", rhs ? "33x129x$T" : "129x33x$T", "65x33x$T",
                             lhs, rhs, Derivatives::none));
}

} // namespace gpuc::gradients
