//===- LogicCases.cpp - Logic, selection, casts and sources ------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

static void addLogic(Cases &cases) {
  for (const char *op : {"and", "or", "xor"}) {
    std::string text = std::string("%y = gpuc.") + op + " %x0, %x1 : ";
    Input a{"4xi1", 0, 0, {0, 0, 1, 1}}, b{"4xi1", 0, 0, {0, 1, 0, 1}};
    cases.push_back({std::string("gpuc.") + op,
                     "i1",
                     {a, b},
                     text + "tensor<4xi1>",
                     {{"%y", "4xi1"}},
                     Derivatives::none});
    Input x{"3x5xi32", -1e9, 1e9};
    cases.push_back({std::string("gpuc.") + op,
                     "i32",
                     {x, x},
                     text + "tensor<3x5xi32>",
                     {{"%y", "3x5xi32"}},
                     Derivatives::none});
  }
  for (const char *type : {"4xi1", "3xui8", "5xi64"})
    cases.push_back({"gpuc.not",
                     type,
                     {{type, 0, 1}},
                     "%y = gpuc.not %x0 : " + tensor(type),
                     {{"%y", type}},
                     Derivatives::none});
}

static void addComparisons(Cases &cases) {
  const std::vector<double> left = {nan, 1, -0.0, 2, inf, 3, nan}, right = {1, nan, 0, 3, inf, 2, nan};
  for (const char *predicate : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    std::string text = std::string("%y = gpuc.compare ") + predicate + " %x0, %x1 : ";
    auto add = [&](const std::string &name, Input a, Input b, const std::string &shape) {
      cases.push_back({"gpuc.compare",
                       predicate + name,
                       {a, b},
                       text + tensor(a.type),
                       {{"%y", shape + "xi1"}},
                       Derivatives::none});
    };
    add("_real", {"7x$T", 0, 0, left}, {"7x$T", 0, 0, right}, "7");
    add("_i32", {"3x5xi32", -2, 2}, {"3x5xi32", -2, 2}, "3x5");
    add("_ui8", {"3xui8", 0, 0, {200, 1, 7}}, {"3xui8", 0, 0, {1, 200, 7}}, "3");
    add("_i1", {"4xi1", 0, 0, {0, 0, 1, 1}}, {"4xi1", 0, 0, {0, 1, 0, 1}}, "4");
  }
}

static void addSelects(Cases &cases) {
  for (const std::string &shape : {"3x5", "1", ""}) {
    std::string flags = shape.empty() ? "i1" : shape + "xi1";
    cases.push_back({"gpuc.select",
                     "shape_" + shape,
                     {{flags, 0, 1}, {real(shape)}, {real(shape)}},
                     "%y = gpuc.select %x0, %x1, %x2 : " + tensor(flags) + ", " + tensor(real(shape)),
                     {{"%y", real(shape)}}});
  }
  cases.push_back({"gpuc.select",
                   "i64",
                   {{"4xi1", 0, 1}, {"4xi64", -9, 9}, {"4xi64", -9, 9}},
                   "%y = gpuc.select %x0, %x1, %x2 : tensor<4xi1>, tensor<4xi64>",
                   {{"%y", "4xi64"}},
                   Derivatives::none});
}

static void addCasts(Cases &cases) {
  auto add = [&](const std::string &name, Input x, const std::string &to, Derivatives derivatives) {
    std::string shape = x.type.substr(0, x.type.rfind('x') + 1);
    cases.push_back({"gpuc.cast",
                     name,
                     {x},
                     "%y = gpuc.cast %x0 : " + tensor(x.type) + " to " + tensor(shape + to),
                     {{"%y", shape + to}},
                     derivatives});
  };
  // Exact in f64, so that differences see the identity.
  add("to_f64", {"3x5x$T"}, "f64", Derivatives::second);
  add("same", {"3x5x$T"}, "$T", Derivatives::second);
  const std::vector<double> numbers = {nan, inf, -inf, 2.9, -2.9, 300, -300, 0.5, -0.0, 3e9, -3e9, 1e19};
  for (const char *to : {"i64", "i32", "i8", "ui8", "i1", "f32"})
    add(std::string("real_to_") + to, {"12x$T", 0, 0, numbers}, to, Derivatives::none);
  for (const char *to : {"f16", "bf16"})
    add(std::string("real_to_") + to, {"37x$T", -3, 3}, to, Derivatives::none);
  for (const char *from : {"i64", "i32", "i8"})
    for (const char *to : {"$T", "i64", "i32", "i8", "ui8", "i1"})
      add(std::string(from) + "_to_" + to, {std::string("6x") + from, 0, 0, {0, 1, -1, 100, -128, 127}}, to,
          Derivatives::none);
  for (const char *to : {"$T", "i64", "i32", "i8", "i1"})
    add(std::string("ui8_to_") + to, {"4xui8", 0, 0, {0, 1, 128, 255}}, to, Derivatives::none);
  for (const char *to : {"$T", "i64", "i32", "ui8"})
    add(std::string("i1_to_") + to, {"3xi1", 0, 0, {0, 1, 1}}, to, Derivatives::none);
}

static void addSources(Cases &cases) {
  cases.push_back({"gpuc.constant",
                   "splat",
                   {{"3x5x$T"}},
                   "%c = gpuc.constant 2.5 : tensor<3x5x$T>\n%y = gpuc.mul %x0, %c : tensor<3x5x$T>",
                   {{"%y", "3x5x$T"}}});
  cases.push_back(
      {"gpuc.constant",
       "dense",
       {{"3x$T"}},
       "%c = gpuc.constant dense<[1.0, -2.0, 0.5]> : tensor<3x$T>\n%y = gpuc.mul %x0, %c : tensor<3x$T>",
       {{"%y", "3x$T"}}});
  for (const char *dim : {"0", "1"}) {
    cases.push_back({"gpuc.iota",
                     std::string("dim") + dim,
                     {{"3x5x$T"}},
                     std::string("%c = gpuc.iota dim ") + dim +
                         " : tensor<3x5x$T>\n%y = gpuc.mul %x0, %c : tensor<3x5x$T>",
                     {{"%y", "3x5x$T"}}});
    cases.push_back({"gpuc.iota",
                     std::string("i32_dim") + dim,
                     {{"3x5xi32", -9, 9}},
                     std::string("%c = gpuc.iota dim ") + dim +
                         " : tensor<3x5xi32>\n%y = gpuc.mul %x0, %c : tensor<3x5xi32>",
                     {{"%y", "3x5xi32"}},
                     Derivatives::none});
  }
}

void addLogicCases(Cases &cases) {
  addLogic(cases);
  addComparisons(cases);
  addSelects(cases);
  addCasts(cases);
  addSources(cases);
  cases.push_back({"gpuc.is_finite",
                   "special",
                   {{"5x$T", 0, 0, {nan, inf, -inf, 0, 1}}},
                   "%y = gpuc.is_finite %x0 : tensor<5x$T>",
                   {{"%y", "5xi1"}},
                   Derivatives::none});
  Case stopped{
      "gpuc.stop_gradient", "zero",
      {{"3x$T"}},           "%s = gpuc.stop_gradient %x0 : tensor<3x$T>\n%y = gpuc.mul %s, %s : tensor<3x$T>",
      {{"%y", "3x$T"}},     Derivatives::convention};
  stopped.expected = {0, 0, 0};
  cases.push_back(stopped);
  Case scaled{"gpuc.scale_gradient",
              "eight",
              {{"3x$T"}},
              "%s = gpuc.constant 8.0 : tensor<3x$T>\n"
              "%y = gpuc.scale_gradient %x0, %s : tensor<3x$T>",
              {{"%y", "3x$T"}},
              Derivatives::convention};
  scaled.expected = {8, 8, 8};
  cases.push_back(scaled);
}

} // namespace gpuc::gradients
