//===- NetworkCases.cpp - Softmax and random numbers -------------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

static void addSoftmax(Cases &cases) {
  for (const char *op : {"softmax", "log_softmax"}) {
    auto add = [&](const std::string &name, Input x, const std::string &dim,
                   Derivatives derivatives = Derivatives::second) {
      Case softmax{std::string("gpuc.") + op,
                   name,
                   {x},
                   std::string("%y = gpuc.") + op + " %x0 dim " + dim + " : " + tensor(x.type),
                   {{"%y", x.type}},
                   derivatives};
      softmax.inner = 4; // exponents are as large as inputs differ
      cases.push_back(softmax);
    };
    add("last", {"3x5x$T", -2, 2}, "1");
    add("first", {"3x5x$T", -2, 2}, "0");
    add("middle", {"2x3x4x$T", -2, 2}, "1");
    add("extent_1", {"3x1x$T", -2, 2}, "1");
    add("tie", {"1x3x$T", 0, 0, {2, 2, 2}}, "1");
    add("vector", {"5x8x$T", -2, 2}, "1", Derivatives::none);
    add("vector_and_one", {"5x17x$T", -2, 2}, "1", Derivatives::none);
    add("long", {"3x1037x$T", -2, 2}, "1", Derivatives::none);
    add("special", {"4x3x$T", 0, 0, {nan, 1, 2, -inf, 1, 2, 1000, 0, 999, -1000, -1001, -999}}, "1",
        Derivatives::none);
  }
}

void addNetworkCases(Cases &cases) { addSoftmax(cases); }

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

void addRandomCases(Cases &cases) {
  auto add = [&](const std::string &op, const std::string &name, const std::string &attributes,
                 const std::string &to) {
    Input seed{"i64", 0, 0, {123456789012}}, step{"i64", 0, 0, {7}};
    Case drawn{"gpuc." + op,
               name,
               {seed, step},
               "%y = gpuc." + op + " seed %x0 step %x1 " + attributes + " : (tensor<i64>, tensor<i64>) -> " +
                   tensor(to),
               {{"%y", to}},
               Derivatives::none};
    drawn.inner = 8; // -2 log u is at most 74, its root 8.6
    cases.push_back(drawn);
  };
  add("random_bits", "matrix", "id 3", "5x7xi32");
  add("random_bits", "further_draw", "id 805306371", "3xi32");
  cases.push_back({"gpuc.random_bits",
                   "from",
                   {{"i64", 0, 0, {123456789012}}, {"i64", 0, 0, {7}}, {"i64", 0, 0, {1099511627777}}},
                   "%y = gpuc.random_bits seed %x0 step %x1 id 3 from %x2 : "
                   "(tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<5x7xi32>",
                   {{"%y", "5x7xi32"}},
                   Derivatives::none});
  add("random_uniform", "unit", "id 3 low 0.0 high 1.0", "5x7x$T");
  add("random_uniform", "range", "id 4 low -0.25 high 0.5", "1037x$T");
  add("random_normal", "unit", "id 5 mean 0.0 deviation 1.0", "5x7x$T");
  add("random_normal", "scaled", "id 6 mean 1.0 deviation 0.02", "1037x$T");
  for (const char *p : {"0.0", "0.3", "0.5", "1.0"})
    cases.push_back({"gpuc.dropout",
                     std::string("p_") + p,
                     {{"5x7x$T"}},
                     std::string("%d = gpuc.dropout %x0 p ") + p +
                         " id 9 : tensor<5x7x$T>\n%y = gpuc.mul %d, %x0 : tensor<5x7x$T>",
                     {{"%y", "5x7x$T"}}});
}

} // namespace gpuc::gradients
