//===- UpdateCases.cpp - Updates of optimizers -------------------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {
namespace {

/// An operand, after a keyword.
struct Operand {
  std::string keyword;
  Input input;
};

/// A number of an update, in f64.
std::string number(const std::string &name, const std::string &value) {
  return name + " = " + value + " : f64";
}

/// An update of `outputs` as their types say; `attributes` stand behind the operands. What comes between
/// operands and braces is `flags`.
Case update(const std::string &op, const std::string &name, const std::vector<Operand> &operands,
            const std::vector<std::string> &attributes, const std::vector<std::string> &outputs,
            const std::string &flags = "") {
  Case built{"gpuc." + op, name, {}, "", {}, Derivatives::none};
  std::string arguments, types, results, resultTypes, list;
  for (const Operand &operand : operands) {
    arguments += " " + operand.keyword + " %x" + std::to_string(built.inputs.size());
    types += (types.empty() ? "" : ", ") + tensor(operand.input.type);
    built.inputs.push_back(operand.input);
  }
  for (const std::string &type : outputs) {
    std::string value = "%y" + std::to_string(built.outputs.size());
    results += (results.empty() ? "" : ", ") + value;
    resultTypes += (resultTypes.empty() ? "" : ", ") + tensor(type);
    built.outputs.push_back({value, type});
  }
  for (const std::string &attribute : attributes)
    list += (list.empty() ? "" : ", ") + attribute;
  built.body = results + " = gpuc." + op + arguments + " " + flags + " {" + list + "} : (" + types +
               ") -> (" + resultTypes + ")";
  built.inner = 1;
  return built;
}

Input any(const std::string &shape) { return {real(shape)}; }
Input positive(const std::string &shape) { return {real(shape), 0.1, 1}; }
Input zeros(const std::string &shape) { return {real(shape), 0, 0}; }
Operand step(double t) { return {"step", {"i64", 0, 0, {t}}}; }
Operand rate(double lr) { return {"lr", {"$T", lr, lr}}; }

//===----------------------------------------------------------------------===//
// One element at a time
//===----------------------------------------------------------------------===//

void addSgd(Cases &cases) {
  auto add = [&](const std::string &name, bool hasBuffer, double t, const std::string &momentum,
                 const std::string &dampening, const std::string &decay, const std::string &nesterov) {
    std::vector<Operand> operands = {{"", any("3x5")}, {"gradient", any("3x5")}};
    if (hasBuffer)
      operands.push_back({"buffer", any("3x5")});
    operands.insert(operands.end(), {step(t), rate(0.1)});
    cases.push_back(update("sgd_update", name, operands,
                           {number("momentum", momentum), number("dampening", dampening),
                            number("weight_decay", decay), "nesterov = " + nesterov},
                           std::vector<std::string>(hasBuffer ? 2 : 1, "3x5x$T")));
  };
  add("plain", false, 1, "0.0", "0.0", "0.0", "false");
  add("decay", false, 5, "0.0", "0.0", "0.1", "false");
  add("momentum_first", true, 1, "0.9", "0.5", "0.0", "false");
  add("momentum_later", true, 2, "0.9", "0.5", "0.1", "false");
  add("nesterov", true, 2, "0.9", "0.0", "0.1", "true");
}

void addAdam(Cases &cases) {
  auto add = [&](const std::string &name, double t, const std::string &flags, const std::string &decay,
                 bool hasMax = false) {
    std::vector<Operand> operands = {
        {"", any("3x5")}, {"gradient", any("3x5")}, {"moments", any("3x5")}, {",", positive("3x5")}};
    if (hasMax)
      operands.push_back({"max", positive("3x5")});
    operands.insert(operands.end(), {step(t), rate(0.01)});
    cases.push_back(update("adam_update", name, operands,
                           {number("beta1", "0.9"), number("beta2", "0.999"), number("eps", "1.0e-8"),
                            number("weight_decay", decay)},
                           std::vector<std::string>(hasMax ? 4 : 3, "3x5x$T"), flags));
  };
  add("first", 1, "", "0.0");
  add("decay", 10, "", "0.1");
  add("decoupled", 1000, "decoupled", "0.1");
  add("amsgrad", 10, "", "0.1", true);
  add("amsgrad_decoupled", 1, "decoupled", "0.1", true);
}

void addRmsprop(Cases &cases) {
  auto add = [&](const std::string &name, const std::string &decay, const std::string &momentum,
                 // Above the square of the mean, whose root is taken when it is centered.
                 bool isCentered, Operand square = {"square_avg", {"3x5x$T", 1.1, 2}},
                 const std::string &eps = "1.0e-8") {
    std::vector<Operand> operands = {{"", any("3x5")}, {"gradient", any("3x5")}, square};
    if (momentum != "0.0")
      operands.push_back({"buffer", any("3x5")});
    if (isCentered)
      operands.push_back({"grad_avg", any("3x5")});
    size_t outputs = operands.size() - 1;
    operands.push_back(rate(0.01));
    cases.push_back(update("rmsprop_update", name, operands,
                           {number("alpha", "0.99"), number("eps", eps), number("weight_decay", decay),
                            number("momentum", momentum)},
                           std::vector<std::string>(outputs, "3x5x$T")));
  };
  add("plain", "0.0", "0.0", false);
  add("decay", "0.1", "0.0", false);
  add("momentum", "0.1", "0.9", false);
  add("centered", "0.0", "0.0", true);
  add("centered_momentum", "0.1", "0.9", true);
  // Rounding may leave the square below that of the mean.
  add("centered_below_zero", "0.0", "0.0", true, {"square_avg", {"3x5x$T", 0, 1e-4}}, "0.1");
}

void addAdagrad(Cases &cases) {
  auto add = [&](const std::string &name, double t, const std::string &lrDecay, const std::string &decay,
                 const Input &sum) {
    cases.push_back(
        update("adagrad_update", name,
               {{"", any("3x5")}, {"gradient", any("3x5")}, {"sum", sum}, step(t), rate(0.1)},
               {number("lr_decay", lrDecay), number("eps", "1.0e-10"), number("weight_decay", decay)},
               {"3x5x$T", "3x5x$T"}));
  };
  add("first", 1, "0.0", "0.0", zeros("3x5"));
  add("later", 7, "0.25", "0.1", positive("3x5"));
}

void addAdadelta(Cases &cases) {
  auto add = [&](const std::string &name, const std::string &rho, const std::string &decay,
                 const Input &kept) {
    cases.push_back(update(
        "adadelta_update", name,
        {{"", any("3x5")}, {"gradient", any("3x5")}, {"square_avg", kept}, {"acc_delta", kept}, rate(0.5)},
        {number("rho", rho), number("eps", "1.0e-3"), number("weight_decay", decay)},
        {"3x5x$T", "3x5x$T", "3x5x$T"}));
  };
  add("first", "0.9", "0.0", zeros("3x5"));
  add("later", "0.9", "0.1", positive("3x5"));
  add("no_memory", "0.0", "0.0", positive("3x5"));
}

void addAdamax(Cases &cases) {
  auto add = [&](const std::string &name, double t, const std::string &decay, const Input &average,
                 const Input &norm) {
    cases.push_back(update(
        "adamax_update", name,
        {{"", any("3x5")}, {"gradient", any("3x5")}, {"moments", average}, {",", norm}, step(t), rate(0.01)},
        {number("beta1", "0.9"), number("beta2", "0.75"), number("eps", "1.0e-3"),
         number("weight_decay", decay)},
        {"3x5x$T", "3x5x$T", "3x5x$T"}));
  };
  add("first", 1, "0.0", zeros("3x5"), zeros("3x5"));
  add("later", 10, "0.1", any("3x5"), positive("3x5"));
}

void addNadam(Cases &cases) {
  auto add = [&](const std::string &name, double t, double product, const std::string &flags,
                 const std::string &decay, const std::string &forgets) {
    cases.push_back(update("nadam_update", name,
                           {{"", any("3x5")},
                            {"gradient", any("3x5")},
                            {"moments", any("3x5")},
                            {",", positive("3x5")},
                            {"mu_product", {"$T", product, product}},
                            step(t),
                            rate(0.01)},
                           {number("beta1", "0.9"), number("beta2", "0.999"), number("eps", "1.0e-8"),
                            number("weight_decay", decay), number("momentum_decay", forgets)},
                           {"3x5x$T", "3x5x$T", "3x5x$T", "$T"}, flags));
  };
  add("first", 1, 1, "", "0.0", "4.0e-3");
  add("decay", 10, 0.125, "", "0.1", "0.25");
  add("decoupled", 1000, 0, "decoupled", "0.1", "0.0");
}

void addRadam(Cases &cases) {
  auto add = [&](const std::string &name, double t, const std::string &flags, const std::string &beta2,
                 const std::string &decay) {
    cases.push_back(update("radam_update", name,
                           {{"", any("3x5")},
                            {"gradient", any("3x5")},
                            {"moments", any("3x5")},
                            {",", positive("3x5")},
                            step(t),
                            rate(0.01)},
                           {number("beta1", "0.9"), number("beta2", beta2), number("eps", "1.0e-8"),
                            number("weight_decay", decay)},
                           {"3x5x$T", "3x5x$T", "3x5x$T"}, flags));
  };
  add("unsure", 1, "", "0.999", "0.1"); // the square of nothing: ρ is 1
  add("last_unsure", 5, "", "0.999", "0.0");
  add("sure", 6, "", "0.999", "0.0");
  add("decoupled", 1000, "decoupled", "0.99", "0.1");
  add("never_sure", 1000, "", "0.5", "0.0"); // ρ∞ is 3
}

void addAsgd(Cases &cases) {
  auto add = [&](const std::string &name, double t, const std::string &decay, double share) {
    cases.push_back(update("asgd_update", name,
                           {{"", any("3x5")},
                            {"gradient", any("3x5")},
                            {"ax", any("3x5")},
                            {"eta", {"$T", 0.125, 0.125}},
                            {"mu", {"$T", share, share}},
                            step(t),
                            rate(0.25)},
                           {number("lambd", "0.25"), number("alpha", "0.75"), number("t0", "2.0"),
                            number("weight_decay", decay)},
                           {"3x5x$T", "3x5x$T", "$T", "$T"}));
  };
  add("first", 1, "0.0", 1);
  add("before_the_mean", 2, "0.0", 1);
  add("mean", 6, "0.1", 0.25);
}

void addRprop(Cases &cases) {
  auto add = [&](const std::string &name, double t, const std::string &decay, const Input &gradient,
                 const Input &previous, const std::string &most = "50.0") {
    cases.push_back(
        update("rprop_update", name,
               {{"", any("3x5")},
                {"gradient", gradient},
                {"prev", previous},
                {"step_size", positive("3x5")},
                step(t),
                rate(0.25)},
               {number("eta_minus", "0.5"), number("eta_plus", "1.25"), number("step_size_min", "0.125"),
                number("step_size_max", most), number("weight_decay", decay)},
               {"3x5x$T", "3x5x$T", "3x5x$T"}));
  };
  add("first", 1, "0.0", any("3x5"), zeros("3x5"));
  add("later", 7, "0.0", any("3x5"), any("3x5"));
  add("bounded", 7, "0.0", any("3x5"), any("3x5"), "0.5");
  add("decay", 7, "0.1", any("3x5"), any("3x5"));
  add("no_gradient", 7, "0.0", zeros("3x5"), any("3x5"));
}

void addLion(Cases &cases) {
  auto add = [&](const std::string &name, const std::string &decay, const Input &gradient,
                 const Input &average) {
    cases.push_back(update("lion_update", name,
                           {{"", any("3x5")}, {"gradient", gradient}, {"exp_avg", average}, rate(0.1)},
                           {number("beta1", "0.9"), number("beta2", "0.99"), number("weight_decay", decay)},
                           {"3x5x$T", "3x5x$T"}));
  };
  add("plain", "0.0", any("3x5"), any("3x5"));
  add("decay", "0.1", any("3x5"), any("3x5"));
  add("zero", "0.1", zeros("3x5"), zeros("3x5"));
}

/// Numbers that are given hold, not those of the attributes.
void addGiven(Cases &cases) {
  auto given = [](std::vector<Operand> operands, std::initializer_list<double> numbers) {
    for (double value : numbers)
      operands.push_back({operands.back().keyword == "lr" ? "given" : ",", {"$T", value, value}});
    return operands;
  };
  const std::vector<Operand> buffer = {
      {"", any("3x5")}, {"gradient", any("3x5")}, {"buffer", any("3x5")}, step(2), rate(0.1)};
  cases.push_back(update("sgd_update", "given", given(buffer, {0.75, 0.25}),
                         {number("momentum", "0.9"), number("dampening", "0.0"),
                          number("weight_decay", "0.1"), "nesterov = true"},
                         {"3x5x$T", "3x5x$T"}, R"(["momentum", "weight_decay"])"));
  const std::vector<Operand> moments = {
      {"", any("3x5")}, {"gradient", any("3x5")}, {"moments", any("3x5")}, {",", positive("3x5")}, step(10),
      rate(0.01)};
  const std::vector<std::string> adam = {number("beta1", "0.9"), number("beta2", "0.999"),
                                         number("eps", "1.0e-8"), number("weight_decay", "0.1")};
  cases.push_back(update("adam_update", "given", given(moments, {0.25, 0.75, 0.5}), adam,
                         {"3x5x$T", "3x5x$T", "3x5x$T"}, R"(["weight_decay", "beta1", "beta2"])"));
  cases.push_back(update("adam_update", "given_decoupled", given(moments, {0.875, 0.5}), adam,
                         {"3x5x$T", "3x5x$T", "3x5x$T"}, R"(["beta1", "weight_decay"] decoupled)"));
  const std::vector<Operand> mean = {{"", any("3x5")},
                                     {"gradient", any("3x5")},
                                     {"square_avg", positive("3x5")},
                                     {"buffer", any("3x5")},
                                     rate(0.01)};
  cases.push_back(update("rmsprop_update", "given", given(mean, {0.5, 0.75}),
                         {number("alpha", "0.99"), number("eps", "1.0e-8"), number("weight_decay", "0.1"),
                          number("momentum", "0.9")},
                         {"3x5x$T", "3x5x$T", "3x5x$T"}, R"(["momentum", "weight_decay"])"));
  cases.push_back(
      update("adagrad_update", "given",
             given({{"", any("3x5")}, {"gradient", any("3x5")}, {"sum", positive("3x5")}, step(7), rate(0.1)},
                   {0.5}),
             {number("lr_decay", "0.25"), number("eps", "1.0e-10"), number("weight_decay", "0.0")},
             {"3x5x$T", "3x5x$T"}, R"(["weight_decay"])"));
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// `row` and `column` are the shapes of factored moments; without them there is one variance.
void addAdafactor(Cases &cases, const std::string &name, double t, const std::string &shape,
                  const std::string &row, const std::string &column, const std::string &decay,
                  const Input &gradient) {
  std::vector<Operand> operands = {{"", any(shape)}, {"gradient", gradient}};
  std::vector<std::string> outputs = {real(shape)};
  for (const std::string &kept : column.empty() ? std::vector{row} : std::vector{row, column}) {
    operands.push_back({outputs.size() == 1 ? "variances" : ",", t == 1 ? zeros(kept) : positive(kept)});
    outputs.push_back(real(kept));
  }
  operands.insert(operands.end(), {step(t), rate(0.01)});
  cases.push_back(update("adafactor_update", name, operands,
                         {number("beta2_decay", "-0.8"), number("eps1", "1.0e-3"), number("eps2", "1.0e-3"),
                          number("d", "1.0"), number("weight_decay", decay)},
                         outputs));
}

void addAdafactorCases(Cases &cases) {
  auto add = [&](const std::string &name, double t, const std::string &shape, const std::string &row,
                 const std::string &column, const std::string &decay = "0.0") {
    addAdafactor(cases, name, t, shape, row, column, decay, any(shape));
  };
  add("matrix_first", 1, "3x5", "3x1", "1x5");
  add("matrix", 10, "5x3", "5x1", "1x3", "0.1");
  add("matrices", 10, "2x3x5", "2x3x1", "2x1x5");
  add("filter", 3, "4x3x3x2", "4x3x3x1", "4x3x1x2");
  add("one_row", 10, "1x7", "1x1", "1x7");
  add("one_column", 10, "7x1", "7x1", "1x1");
  add("one_element", 10, "1x1", "1x1", "1x1");
  add("vector", 10, "7", "7", "", "0.1");
  add("scalar", 10, "", "", "");
  // Nothing to divide by but eps1.
  addAdafactor(cases, "no_gradient", 1, "3x5", "3x1", "1x5", "0.1", zeros("3x5"));
}

void addMuon(Cases &cases) {
  auto add = [&](const std::string &name, const std::string &shape, const std::string &nesterov,
                 const std::string &steps, const std::string &decay, const Input &gradient) {
    bool isZero = gradient.low == 0 && gradient.high == 0;
    Case muon = update(
        "muon_update", name,
        {{"", any(shape)}, {"gradient", gradient}, {"buffer", isZero ? zeros(shape) : any(shape)}, rate(0.1)},
        {number("momentum", "0.95"), "nesterov = " + nesterov, "ns_steps = " + steps + " : i64",
         number("weight_decay", decay)},
        {real(shape), real(shape)});
    muon.inner = 8; // each iteration multiplies small singular values, and their errors, by 3.4
    cases.push_back(muon);
  };
  add("wide", "3x5", "true", "5", "0.0", any("3x5"));
  add("tall", "7x3", "true", "5", "0.1", any("7x3"));
  add("no_nesterov", "4x4", "false", "3", "0.0", any("4x4"));
  add("filter", "4x3x3x2", "true", "5", "0.1", any("4x3x3x2"));
  add("one_row", "1x5", "true", "5", "0.0", any("1x5"));
  add("one_column", "5x1", "true", "1", "0.0", any("5x1"));
  add("no_gradient", "3x5", "true", "5", "0.1", zeros("3x5"));
}

} // namespace

void addUpdateCases(Cases &cases) {
  addSgd(cases);
  addAdam(cases);
  addRmsprop(cases);
  addAdagrad(cases);
  addAdadelta(cases);
  addAdamax(cases);
  addNadam(cases);
  addRadam(cases);
  addAsgd(cases);
  addRprop(cases);
  addLion(cases);
  addGiven(cases);
  addAdafactorCases(cases);
  addMuon(cases);
}

} // namespace gpuc::gradients
