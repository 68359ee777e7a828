//===- Reader.cpp - A recorded graph from JSON --------------------------------===//

#include "frontend/torch/Torch.h"

#include <nlohmann/json.hpp>

#include <array>

namespace gpuc::torch {
namespace {

using Json = nlohmann::json;

/// Thrown within this file alone, and caught by parseGraph().
struct Malformed {
  std::string text;
};

const Json &at(const Json &object, const char *key) {
  if (!object.is_object() || !object.contains(key))
    throw Malformed{std::string("'") + key + "' is missing"};
  return object.at(key);
}

std::string textAt(const Json &object, const char *key) { return at(object, key).get<std::string>(); }

TensorSpec specOf(const Json &json) {
  TensorSpec spec;
  spec.name = json.value("name", "");
  const std::string type = textAt(json, "type");
  std::optional<DataType> known = parseDataType(type);
  if (!known)
    throw Malformed{"'" + spec.name + "' is " + type + ", an element type that gpuc does not have"};
  spec.type = *known;
  spec.shape = at(json, "shape").get<std::vector<int64_t>>();
  for (int64_t extent : spec.shape)
    if (extent < 0)
      throw Malformed{"'" + spec.name + "' has a negative extent"};
  return spec;
}

Reference referenceOf(const Json &json) {
  constexpr std::array<std::pair<const char *, Reference::Kind>, 4> kKinds = {{
      {"node", Reference::Kind::node},
      {"input", Reference::Kind::input},
      {"variable", Reference::Kind::variable},
      {"constant", Reference::Kind::constant},
  }};
  for (auto [key, kind] : kKinds)
    if (json.contains(key))
      return {kind, textAt(json, key), json.value("result", int64_t{0})};
  throw Malformed{"a reference is of no known kind"};
}

/// JSON has no infinities, which masks are full of: {"number": "-inf"}.
Argument argumentOf(const Json &json) {
  if (json.is_null())
    return {};
  if (json.is_boolean())
    return {json.get<bool>()};
  if (json.is_number_integer())
    return {json.get<int64_t>()};
  if (json.is_number())
    return {json.get<double>()};
  if (json.is_string())
    return {json.get<std::string>()};
  if (json.is_object() && json.contains("number"))
    return {std::stod(textAt(json, "number"))};
  if (json.is_object())
    return {referenceOf(json)};
  std::vector<Argument> list;
  for (const Json &element : json)
    list.push_back(argumentOf(element));
  return {std::move(list)};
}

Node nodeOf(const Json &json) {
  Node node;
  node.name = textAt(json, "name");
  node.op = textAt(json, "op");
  for (const auto &[name, value] : at(json, "arguments").items())
    node.arguments.emplace_back(name, argumentOf(value));
  for (const Json &result : at(json, "results"))
    node.results.push_back(specOf(result));
  node.used = json.value("used", std::vector<bool>(node.results.size(), true));
  if (node.used.size() != node.results.size())
    throw Malformed{"node '" + node.name + "' does not say of each result whether it is used"};
  if (json.contains("for_rows"))
    node.forRows = json.at("for_rows").get<bool>();
  node.place = {json.value("layer", ""), json.value("file", ""), json.value("line", int64_t{0})};
  return node;
}

Function functionOf(const Json &json) {
  Function function;
  function.name = textAt(json, "name");
  function.isLoss = json.value("is_loss", false);
  for (const Json &input : at(json, "inputs")) {
    function.inputs.push_back(specOf(input));
    function.alike.push_back(input.value("alike", false));
  }
  for (const Json &node : at(json, "nodes"))
    function.nodes.push_back(nodeOf(node));
  for (const Json &output : at(json, "outputs"))
    function.outputs.push_back(referenceOf(output));
  for (const Json &assigned : json.value("assigned", Json::array()))
    function.assigned.emplace_back(textAt(assigned, "variable"), referenceOf(at(assigned, "value")));
  return function;
}

Variable variableOf(const Json &json) {
  constexpr std::array<std::pair<const char *, Variable::Role>, 3> kRoles = {{
      {"trained", Variable::Role::trained},
      {"frozen", Variable::Role::frozen},
      {"buffer", Variable::Role::buffer},
  }};
  const std::string asked = textAt(json, "role");
  for (auto [name, role] : kRoles)
    if (asked == name)
      return {specOf(json), role};
  throw Malformed{"a variable's role is '" + asked + "'"};
}

int hexDigit(char digit) {
  if (digit >= '0' && digit <= '9')
    return digit - '0';
  if (digit >= 'a' && digit <= 'f')
    return digit - 'a' + 10;
  throw Malformed{"a constant's bytes are no hexadecimal digits"};
}

/// `bytes`: little-endian, row-major, two digits each.
onnx::HostTensorPtr constantOf(const Json &json) {
  auto tensor = std::make_shared<onnx::HostTensor>();
  tensor->spec = specOf(json);
  const std::string digits = textAt(json, "bytes");
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(hexDigit(digits[i]) * 16 + hexDigit(digits[i + 1]));
  if (static_cast<int64_t>(bytes.size()) != tensor->spec.sizeBytes())
    throw Malformed{"constant '" + tensor->spec.name + "' has " + std::to_string(bytes.size()) +
                    " bytes, expected " + std::to_string(tensor->spec.sizeBytes())};
  tensor->bytes = std::make_shared<const std::string>(std::move(bytes));
  return tensor;
}

Graph graphOf(const Json &json) {
  Graph graph;
  graph.name = textAt(json, "name");
  for (const Json &variable : at(json, "variables"))
    graph.variables.push_back(variableOf(variable));
  for (const Json &constant : at(json, "constants"))
    graph.constants.push_back(constantOf(constant));
  for (const Json &function : at(json, "functions"))
    graph.functions.push_back(functionOf(function));
  return graph;
}

} // namespace

Result<Graph> parseGraph(const std::string &json) {
  try {
    return graphOf(Json::parse(json));
  } catch (const Malformed &malformed) {
    return Status::error("the recorded graph: " + malformed.text);
  } catch (const std::exception &error) {
    return Status::error(std::string("the recorded graph: ") + error.what());
  }
}

} // namespace gpuc::torch
