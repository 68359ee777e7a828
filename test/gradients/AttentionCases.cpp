//===- AttentionCases.cpp - Attention and its gradient -------------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

namespace {

/// The operands and attributes that attention and its gradient share.
struct Attention {
  std::string name;
  std::string queries = "2x2x3x4", keys = "2x2x5x4", values = "2x2x5x3", attributes = "";
  std::vector<Input> mask = {};
  Derivatives derivatives = Derivatives::second;

  /// B, H and T of the queries.
  std::string rows() const { return queries.substr(0, queries.rfind('x')); }
  std::string result() const { return rows() + values.substr(values.rfind('x')); }
  bool hasFloatMask() const { return !mask.empty() && mask[0].isReal(); }

  /// Adds the mask to inputs and types, and returns "mask %xN".
  std::string addMask(std::vector<Input> &inputs, std::string &types) const {
    if (mask.empty())
      return "";
    types += ", " + tensor(mask[0].type);
    inputs.push_back(mask[0]);
    return " mask %x" + std::to_string(inputs.size() - 1);
  }

  Case forward() const {
    std::vector<Input> inputs = {{real(queries)}, {real(keys)}, {real(values)}};
    std::string types = tensor(real(queries)) + ", " + tensor(real(keys)) + ", " + tensor(real(values));
    std::string masked = addMask(inputs, types);
    Case built{"gpuc.attention",
               name,
               inputs,
               "%y, %lse = gpuc.attention %x0, %x1, %x2" + masked + " " + attributes + " : (" + types +
                   ") -> (" + tensor(real(result())) + ", " + tensor(real(rows())) + ")",
               {{"%y", real(result())}, {"%lse", real(rows())}},
               derivatives};
    built.inner = 8; // scores, and the exponentials of what they differ by
    return built;
  }

  /// The same of attention_gradient, of any cotangent, result and logarithms.
  Case backward() const {
    std::vector<Input> inputs = {{real(result())}, {real(result())}, {real(rows()), 1, 2},
                                 {real(queries)},  {real(keys)},     {real(values)}};
    std::string types;
    for (const Input &input : inputs)
      types += (types.empty() ? "" : ", ") + tensor(input.type);
    std::string masked = addMask(inputs, types);
    std::string results = tensor(real(queries)) + ", " + tensor(real(keys)) + ", " + tensor(real(values));
    std::vector<Output> outputs = {{"%y", real(queries)}, {"%dk", real(keys)}, {"%dv", real(values)}};
    if (hasFloatMask()) {
      results += ", " + tensor(mask[0].type);
      outputs.push_back({"%dm", mask[0].type});
    }
    std::string names;
    for (const Output &output : outputs)
      names += (names.empty() ? "" : ", ") + output.name;
    Case built{"gpuc.attention_gradient",
               name,
               inputs,
               names + " = gpuc.attention_gradient %x0 of %x1, %x2 query %x3 key %x4 value %x5" + masked +
                   " " + attributes + " : (" + types + ") -> (" + results + ")",
               outputs,
               derivatives};
    built.inner = 32; // sums of products of probabilities of size 1
    return built;
  }
};

} // namespace

/// Half precision is computed as f32.
static void addHalfAttention(Cases &cases, const std::string &element) {
  const std::string type = "1x2x3x4x" + element, half = tensor(type), logarithms = tensor("1x2x3xf32");
  const std::string forward = "%h = gpuc.cast %x0 : tensor<1x2x3x4x$T> to " + half +
                              "\n%y, %lse = gpuc.attention %h, %h, %h causal : (" + half + ", " + half +
                              ", " + half + ") -> (" + half + ", " + logarithms + ")";
  Case narrow{"gpuc.attention", element, {{"1x2x3x4x$T"}}, forward, {{"%y", type}, {"%lse", "1x2x3xf32"}},
              Derivatives::none};
  narrow.inner = 8;
  cases.push_back(narrow);
  narrow.op = "gpuc.attention_gradient";
  narrow.body +=
      "\n%dq, %dk, %dv = gpuc.attention_gradient %h of %y, %lse query %h key %h value %h causal : (" + half +
      ", " + half + ", " + logarithms + ", " + half + ", " + half + ", " + half + ") -> (" + half + ", " +
      half + ", " + half + ")";
  narrow.outputs = {{"%dq", type}, {"%dk", type}, {"%dv", type}};
  cases.push_back(narrow);
}

void addAttentionCases(Cases &cases) {
  Input flags{"3x5xi1", 0, 0, {1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  Input sentences{"2x1x1x5xi1", 0, 0, {1, 1, 1, 0, 0, 1, 1, 1, 1, 1}};
  Input blind{"3x5xi1", 0, 0, {1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}};
  Attention variants[] = {
      {.name = "plain"},
      {.name = "scale", .attributes = "scale 0.3"},
      {.name = "causal", .attributes = "causal"},
      {.name = "causal_square", .keys = "2x2x3x4", .values = "2x2x3x4", .attributes = "causal"},
      {.name = "grouped", .queries = "2x4x3x4"},
      {.name = "one_key_head", .keys = "2x1x5x4", .values = "2x1x5x3"},
      {.name = "extent_1", .queries = "1x1x1x1", .keys = "1x1x1x1", .values = "1x1x1x1"},
      {.name = "flags", .mask = {flags}},
      {.name = "sentences", .attributes = "causal", .mask = {sentences}},
      {.name = "bias", .mask = {{"2x1x5x$T"}}},
      {.name = "full_bias", .mask = {{"2x2x3x5x$T"}}},
      {.name = "blind", .mask = {blind}},
      {.name = "dropout", .attributes = "dropout 0.3 id 11"},
      {.name = "causal_dropout", .attributes = "causal dropout 0.5 id 12", .mask = {sentences}},
      {.name = "dropout_all", .attributes = "dropout 1.0 id 13"},
      {.name = "long",
       .queries = "1x2x33x16",
       .keys = "1x2x65x16",
       .values = "1x2x65x16",
       .attributes = "causal",
       .derivatives = Derivatives::none},
  };
  for (const Attention &variant : variants) {
    cases.push_back(variant.forward());
    cases.push_back(variant.backward());
  }
  // A bias of -∞ masks; differences of it say nothing.
  Attention infinite{.name = "infinite_bias", .mask = {{"3x5x$T"}}};
  infinite.mask[0].values = {0, -inf, 1, 2, -inf, -inf, -inf, -inf, -inf, -inf, 0, 0, 1, 0, 0};
  infinite.mask[0].differentiate = false;
  cases.push_back(infinite.forward());
  // The logarithms as what is differentiated, alone.
  Case logarithms = Attention{.name = "log_sum_exp", .attributes = "causal"}.forward();
  std::swap(logarithms.outputs[0], logarithms.outputs[1]);
  cases.push_back(logarithms);
  addHalfAttention(cases, "f16");
  addHalfAttention(cases, "bf16");
  // NaN in a query is its own row's; in a key it is masked with the key.
  Attention special{.name = "special",
                    .queries = "1x1x2x1",
                    .keys = "1x1x2x1",
                    .values = "1x1x2x1",
                    .attributes = "causal",
                    .derivatives = Derivatives::none};
  Case nanQuery = special.forward(), nanKey = special.forward();
  nanQuery.name = "nan_query";
  nanQuery.inputs[0].values = {nan, 1};
  nanKey.name = "nan_key";
  nanKey.inputs[1].values = {1, nan};
  cases.insert(cases.end(), {nanQuery, nanKey});
}

} // namespace gpuc::gradients
