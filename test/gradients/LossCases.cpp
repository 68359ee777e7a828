//===- LossCases.cpp - Losses and metrics -------------------------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

namespace {

/// Operands of a loss beside the first two.
struct Further {
  std::vector<Input> weight = {}; ///< Under `keyword`.
  std::vector<Input> mask = {};
  std::string keyword = "weight";
};

} // namespace

/// gpuc.<op> of %x0 and %x1; `attributes` stands between operands and types.
static Case loss(const std::string &op, const std::string &name, Input first, Input second,
                 const std::string &attributes = "", const Further &further = {},
                 Derivatives derivatives = Derivatives::second) {
  std::vector<Input> inputs = {std::move(first), std::move(second)};
  std::string operands = "%x0, %x1", types = tensor(inputs[0].type) + ", " + tensor(inputs[1].type);
  auto add = [&](const std::string &keyword, Input input) {
    operands += " " + keyword + " %x" + std::to_string(inputs.size());
    types += ", " + tensor(input.type);
    input.differentiate = false;
    inputs.push_back(std::move(input));
  };
  for (const Input &weight : further.weight)
    add(further.keyword, weight);
  for (const Input &mask : further.mask)
    add("mask", mask);
  std::string body = "%y, %count = gpuc." + op + " " + operands + " " + attributes + " : (" + types +
                     ") -> (tensor<$T>, tensor<$T>)";
  Case result{"gpuc." + op, name, inputs, body, {{"%y", "$T"}, {"%count", "$T"}}, derivatives};
  result.inner = 16; // rows of size 1
  return result;
}

static void addClassLosses(Cases &cases) {
  Input logits{"4x5x$T", -2, 2}, labels{"4xi32", 0, 4}, mask{"4xi1", 0, 0, {1, 0, 1, 1}};
  Input ignored{"4xi64", 0, 0, {3, -100, 0, 7}}, weight{"5x$T", 0.5, 1.5};
  for (const std::string &op : {"cross_entropy", "nll", "accuracy"}) {
    Derivatives derivatives = op == "accuracy" ? Derivatives::none : Derivatives::second;
    auto add = [&](const std::string &name, const Input &first, const Input &second,
                   const std::string &attributes = "", const Further &further = {}) {
      cases.push_back(loss(op, name, first, second, attributes, further, derivatives));
    };
    add("plain", logits, labels);
    add("mask", logits, labels, "", {.mask = {mask}});
    add("no_class", logits, ignored);
    add("ignore", logits, {"4xi32", 0, 0, {2, 1, 2, 0}}, "{ignore_index = 2 : i64}");
    add("nothing_counts", logits, {"4xi32", 0, 0, {-1, 5, -100, 9}});
    add("tokens", {"2x3x5x$T", -2, 2}, {"2x3xi32", 0, 4}, "", {.mask = {{"2xi1", 0, 0, {1, 0}}}});
    add("one_class", {"3x1x$T", -2, 2}, {"3xi32", 0, 0, {0, 0, 1}});
    cases.push_back(loss(op, "masked_nan", {"2x3x$T", 0, 0, {nan, 1, 2, 0.5, 1, -1}}, {"2xi32", 0, 0, {0, 1}},
                         "", {.mask = {{"2xi1", 0, 0, {0, 1}}}}, Derivatives::none));
    if (op == "accuracy")
      continue;
    add("weight", logits, labels, "", {.weight = {weight}});
    add("weight_mask_ignore", logits, ignored, "{ignore_index = 0 : i64}",
        {.weight = {weight}, .mask = {mask}});
    add("weight_tokens", {"2x3x5x$T", -2, 2}, {"2x3xi64", 0, 4}, "", {.weight = {weight}});
  }
  cases.push_back(
      loss("cross_entropy", "smoothing", logits, labels, "{smoothing = 0.1 : f64}", {.mask = {mask}}));
  cases.push_back(loss("cross_entropy", "weight_smoothing", logits, labels,
                       "{smoothing = 0.3 : f64, ignore_index = 1 : i64}",
                       {.weight = {weight}, .mask = {mask}}));
  cases.push_back(loss("cross_entropy", "impossible", {"1x3x$T", 0, 0, {-inf, 1, 2}}, {"1xi32", 0, 0, {1}},
                       "", {}, Derivatives::none));
  cases.push_back(loss("nll", "impossible", {"2x3x$T", 0, 0, {-inf, -1, -2, -inf, -1, -2}},
                       {"2xi32", 0, 0, {1, 0}}, "", {}, Derivatives::none));
}

/// One op with a case for each form that every loss of pairs has; `low` and `high` bound the prediction.
static void addElementLoss(Cases &cases, const std::string &op, double low, double high,
                           const std::string &attributes = "") {
  Input mask{"4xi1", 0, 0, {1, 0, 1, 1}};
  auto add = [&](const std::string &name, const std::string &shape, const Further &further = {}) {
    cases.push_back(loss(op, name, {real(shape), low, high}, {real(shape), -0.2, 0.2}, attributes, further));
  };
  add("plain", "3x5");
  add("mask", "4x2", {.mask = {mask}});
  add("images", "4x3x1x7", {.mask = {mask}});
  add("scalar", "");
  cases.push_back(loss(op, "masked_nan", {"2x2x$T", 0, 0, {nan, 1, 2, 3}}, {"2x2x$T"}, attributes,
                       {.mask = {{"2xi1", 0, 0, {0, 1}}}}, Derivatives::none));
  const std::pair<const char *, std::vector<double>> specials[] = {
      {"large", {0, -0.0, -50, 80}}, {"infinite", {1, inf, 2, 3}}, {"nan", {nan, 1, 2, 3}}};
  for (const auto &[name, predictions] : specials)
    cases.push_back(loss(op, name, {"4x$T", 0, 0, predictions}, {"4x$T", 0, 0, {0, 1, 0.5, 0.5}}, attributes,
                         {}, Derivatives::none));
}

/// The slope at each prediction where difference quotients say nothing, targets being 0.
static void addKink(Cases &cases, const std::string &op, std::vector<double> predictions,
                    std::vector<double> slopes, const std::string &attributes = "") {
  std::string type = std::to_string(predictions.size()) + "x$T";
  Case kink = loss(op, "kink", {type, 0, 0, predictions},
                   {type, 0, 0, std::vector<double>(predictions.size()), false}, attributes, {},
                   Derivatives::convention);
  kink.expected = std::move(slopes);
  cases.push_back(kink);
}

static void addElementLosses(Cases &cases) {
  addElementLoss(cases, "mse", -1, 1);
  // Away from the kinks at a difference of 0, and of delta.
  addElementLoss(cases, "l1", 0.3, 1);
  addElementLoss(cases, "huber", -0.25, 0.25, "{delta = 0.5 : f64}");
  cases.push_back(loss("huber", "linear", {"3x5x$T", 1, 2}, {"3x5x$T", -0.2, 0.2}));
  cases.push_back(loss("huber", "wide", {"3x5x$T", -1, 1}, {"3x5x$T", -0.2, 0.2}, "{delta = 2.0 : f64}"));
  addElementLoss(cases, "bce_with_logits", -2, 2);
  for (const char *shape : {"5x$T", "1x$T", "3x1x$T", "$T"})
    cases.push_back(loss("bce_with_logits", std::string("weight_") + shape, {"3x5x$T", -2, 2},
                         {"3x5x$T", 0, 1}, "", {.weight = {{shape, 0.5, 3}}, .keyword = "positive_weight"}));
  cases.push_back(loss("bce_with_logits", "weight_mask", {"4x3x2x$T", -2, 2}, {"4x3x2x$T", 0, 1}, "",
                       {.weight = {{"3x1x$T", 0.5, 3}},
                        .mask = {{"4xi1", 0, 0, {1, 0, 1, 1}}},
                        .keyword = "positive_weight"}));
  addKink(cases, "l1", {0, -0.0, 1, -2}, {0, 0, 1, -1});
  addKink(cases, "huber", {1, -1, 3, -0.5}, {1, -1, 1, -0.5});
}

/// f16 and bf16 are computed and summed as f32; the inputs are numbers of both.
static void addHalfLosses(Cases &cases, const std::string &element) {
  std::vector<double> eighths, targets;
  for (int i = 0; i < 24; ++i) {
    eighths.push_back(i * 5 % 17 / 8.0 - 1);
    targets.push_back(i * 7 % 9 / 8.0);
  }
  for (const std::string &op :
       {"mse", "l1", "huber", "bce_with_logits", "cross_entropy", "nll", "accuracy"}) {
    bool hasLabels = op == "cross_entropy" || op == "nll" || op == "accuracy";
    std::string half = tensor("4x6x" + element), second = hasLabels ? "%x1" : "%t";
    std::vector<Input> inputs = {{"4x6x$T", 0, 0, eighths}};
    std::string body = "%h = gpuc.cast %x0 : tensor<4x6x$T> to " + half + "\n";
    if (hasLabels) {
      inputs.push_back({"4xi32", 0, 5});
    } else {
      inputs.push_back({"4x6x$T", 0, 0, targets});
      body += "%t = gpuc.cast %x1 : tensor<4x6x$T> to " + half + "\n";
    }
    body += "%y, %n = gpuc." + op + " %h, " + second + " : (" + half + ", " +
            (hasLabels ? tensor("4xi32") : half) + ") -> (tensor<f32>, tensor<f32>)";
    Case built{"gpuc." + op, element, inputs, body, {{"%y", "f32"}, {"%n", "f32"}}, Derivatives::none};
    built.inner = 32; // 24 elements of size 1
    cases.push_back(built);
  }
}

void addLossCases(Cases &cases) {
  addHalfLosses(cases, "f16");
  addHalfLosses(cases, "bf16");
  addClassLosses(cases);
  addElementLosses(cases);
}

} // namespace gpuc::gradients
