//===- LinearLossCases.cpp - A linear layer and its loss in one -----------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

namespace {

/// What the three ops share.
struct Linear {
  std::string name;
  std::string rows = "7", features = "3", classes = "5", attributes = "";
  Input labels = {"7xi32", 0, 4};
  bool bias = false;
  std::vector<Input> classWeight = {}, mask = {};
  Derivatives derivatives = Derivatives::second;

  std::string hidden() const { return rows + "x" + features; }

  /// `op` of %x0, %x1, …; the first of `outputs` is differentiated.
  Case build(const std::string &op, const std::vector<Output> &outputs,
             const std::vector<std::string> &results, const std::string &suffix = "") const {
    std::vector<Input> inputs = {{real(hidden())}, {real(classes + "x" + features)}};
    std::string operands = "%x0, %x1", types = tensor(inputs[0].type) + ", " + tensor(inputs[1].type);
    auto add = [&](const std::string &keyword, Input input, bool differentiate = false) {
      operands += " " + keyword + " %x" + std::to_string(inputs.size());
      types += ", " + tensor(input.type);
      input.differentiate = differentiate;
      inputs.push_back(std::move(input));
    };
    if (bias)
      add("bias", {real(classes)}, true);
    add("labels", labels);
    if (op != "linear_accuracy")
      for (const Input &weight : classWeight)
        add("class_weight", weight);
    for (const Input &flags : mask)
      add("mask", flags);
    std::string names, resultTypes;
    for (const std::string &result : results)
      names += (names.empty() ? "" : ", ") + result;
    for (size_t i = 0; i < results.size(); ++i)
      resultTypes += (i ? ", " : "") + tensor(typeOf(results[i]));
    Case built{"gpuc." + op,
               name + suffix,
               inputs,
               names + " = gpuc." + op + " " + operands + " " + attributes + " : (" + types + ") -> (" +
                   resultTypes + ")",
               outputs,
               op == "linear_accuracy" ? Derivatives::none : derivatives};
    built.inner = 64; // rows of losses and slopes of size 1
    return built;
  }

  std::string typeOf(const std::string &result) const {
    if (result == "%dh")
      return real(hidden());
    if (result == "%dw")
      return real(classes + "x" + features);
    return result == "%db" ? real(classes) : "$T";
  }

  Output output(const std::string &result) const { return {result, typeOf(result)}; }

  void addTo(Cases &cases) const {
    cases.push_back(build("linear_cross_entropy", {output("%sum"), output("%count")}, {"%sum", "%count"}));
    cases.push_back(build("linear_accuracy", {output("%sum"), output("%count")}, {"%sum", "%count"}));
    std::vector<std::string> results = {"%sum", "%count", "%dh", "%dw"};
    if (bias)
      results.push_back("%db");
    // Each gradient as what is differentiated.
    for (size_t first = 2; first < results.size(); ++first) {
      std::vector<Output> outputs = {output(results[first])};
      for (const std::string &result : results)
        if (result != results[first])
          outputs.push_back(output(result));
      cases.push_back(
          build("linear_cross_entropy_gradient", outputs, results, "_" + results[first].substr(1)));
    }
  }
};

} // namespace

/// In half precision, where sums and counts are f32 and gradients are what they are gradients of. Multiples
/// of 1/2, so that logits, which both types would round, are exact.
static void addHalf(Cases &cases, const std::string &element) {
  std::vector<double> halves;
  for (int i = 0; i < 21; ++i)
    halves.push_back((i * 8 % 5 + i / 7 % 3 - 3) / 2.0);
  std::string hidden = tensor("7x3x" + element), weight = tensor("5x3x" + element), scalar = tensor("f32");
  std::string casts = "%h = gpuc.cast %x0 : " + tensor("7x3x$T") + " to " + hidden + "\n" +
                      "%w = gpuc.cast %x1 : " + tensor("5x3x$T") + " to " + weight + "\n";
  auto add = [&](const std::string &op, const std::string &more, const std::string &moreTypes) {
    Case built{
        "gpuc." + op,
        element,
        {{"7x3x$T", 0, 0, halves}, {"5x3x$T", 0, 0, {halves.begin(), halves.begin() + 15}}, {"7xi32", 0, 4}},
        casts + "%sum, %count" + more + " = gpuc." + op + " %h, %w labels %x2 chunk 3 : (" + hidden + ", " +
            weight + ", " + tensor("7xi32") + ") -> (" + scalar + ", " + scalar + moreTypes + ")",
        {{"%sum", "f32"}, {"%count", "f32"}},
        Derivatives::none};
    if (!more.empty())
      built.outputs.insert(built.outputs.end(), {{"%dh", "7x3x" + element}, {"%dw", "5x3x" + element}});
    built.inner = 64; // rows of losses and slopes of size 1
    cases.push_back(built);
  };
  add("linear_cross_entropy", "", "");
  add("linear_accuracy", "", "");
  add("linear_cross_entropy_gradient", ", %dh, %dw", ", " + hidden + ", " + weight);
}

void addLinearLossCases(Cases &cases) {
  addHalf(cases, "f16");
  addHalf(cases, "bf16");
  Input ignored{"7xi64", 0, 0, {3, -100, 0, 7, 1, 4, 2}}, weight{"5x$T", 0.5, 1.5};
  Input mask{"7xi1", 0, 0, {1, 0, 1, 1, 1, 0, 1}};
  Linear variants[] = {
      {.name = "whole"},
      {.name = "bias", .bias = true},
      // 3 chunks of 3 rows, the last with one row that is none.
      {.name = "padded", .attributes = "chunk 3", .bias = true},
      {.name = "each_row", .attributes = "chunk 1", .bias = true},
      {.name = "even", .rows = "6", .attributes = "chunk 3", .labels = {"6xi32", 0, 4}},
      {.name = "options",
       .attributes = "chunk 3 {smoothing = 0.3 : f64, ignore_index = 0 : i64}",
       .labels = ignored,
       .bias = true,
       .classWeight = {weight},
       .mask = {mask}},
      {.name = "tokens",
       .rows = "3x4",
       .attributes = "chunk 5",
       .labels = {"3x4xi64", 0, 4},
       .mask = {{"3xi1", 0, 0, {1, 0, 1}}}},
      {.name = "nothing_counts",
       .attributes = "chunk 3",
       .labels = {"7xi32", 0, 0, {-1, 5, 9, -1, 5, 9, -7}}},
      {.name = "extents_1", .rows = "1", .features = "1", .classes = "1", .labels = {"1xi32", 0, 0}},
  };
  for (const Linear &variant : variants)
    variant.addTo(cases);
}

} // namespace gpuc::gradients
