//===- NetworkCases.cpp - Softmax, random numbers, optimizers ----------------===//

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

//===----------------------------------------------------------------------===//
// Optimizers
//===----------------------------------------------------------------------===//

static Case sgd(const std::string &name, bool hasBuffer, double step, const std::string &attributes) {
  Input tensorInput{"3x5x$T"}, stepInput{"i64", 0, 0, {step}}, lr{"$T", 0.1, 0.1};
  std::vector<Input> inputs = {tensorInput, tensorInput};
  std::string body = "gpuc.sgd_update %x0 gradient %x1 ", types = "tensor<3x5x$T>, tensor<3x5x$T>, ";
  if (hasBuffer) {
    inputs.push_back(tensorInput);
    types += "tensor<3x5x$T>, ";
  }
  inputs.insert(inputs.end(), {stepInput, lr});
  body += hasBuffer ? "buffer %x2 step %x3 lr %x4 " : "step %x2 lr %x3 ";
  body += "{" + attributes + "} : (" + types + "tensor<i64>, tensor<$T>) -> ";
  body += hasBuffer ? "(tensor<3x5x$T>, tensor<3x5x$T>)" : "tensor<3x5x$T>";
  std::vector<Output> outputs = {{"%y", "3x5x$T"}};
  if (hasBuffer)
    outputs.push_back({"%b", "3x5x$T"});
  return {"gpuc.sgd_update", name, inputs, (hasBuffer ? "%y, %b = " : "%y = ") + body, outputs,
          Derivatives::none};
}

static Case adam(const std::string &name, double step, const std::string &decoupled,
                 const std::string &attributes) {
  Input weight{"3x5x$T"}, square{"3x5x$T", 0.1, 1}, stepInput{"i64", 0, 0, {step}}, lr{"$T", 0.01, 0.01};
  std::string types = "tensor<3x5x$T>, tensor<3x5x$T>, tensor<3x5x$T>";
  Case update{"gpuc.adam_update",
              name,
              {weight, weight, weight, square, stepInput, lr},
              "%y, %m, %v = gpuc.adam_update %x0 gradient %x1 moments %x2, %x3 step %x4 lr %x5 " + decoupled +
                  " {" + attributes + "} : (" + types + ", tensor<3x5x$T>, tensor<i64>, tensor<$T>) -> (" +
                  types + ")",
              {{"%y", "3x5x$T"}, {"%m", "3x5x$T"}, {"%v", "3x5x$T"}},
              Derivatives::none};
  update.inner = 1;
  return update;
}

void addUpdateCases(Cases &cases) {
  auto attributes = [](const char *momentum, const char *dampening, const char *decay, const char *nesterov) {
    return std::string("momentum = ") + momentum + " : f64, dampening = " + dampening +
           " : f64, weight_decay = " + decay + " : f64, nesterov = " + nesterov;
  };
  cases.push_back(sgd("plain", false, 1, attributes("0.0", "0.0", "0.0", "false")));
  cases.push_back(sgd("decay", false, 5, attributes("0.0", "0.0", "0.1", "false")));
  cases.push_back(sgd("momentum_first", true, 1, attributes("0.9", "0.5", "0.0", "false")));
  cases.push_back(sgd("momentum_later", true, 2, attributes("0.9", "0.5", "0.1", "false")));
  cases.push_back(sgd("nesterov", true, 2, attributes("0.9", "0.0", "0.1", "true")));
  std::string betas = "beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = ";
  cases.push_back(adam("first", 1, "", betas + "0.0 : f64"));
  cases.push_back(adam("decay", 10, "", betas + "0.1 : f64"));
  cases.push_back(adam("decoupled", 1000, "decoupled", betas + "0.1 : f64"));
}

} // namespace gpuc::gradients
