//===- Upgrade.cpp - Nodes of old opsets as those of opset 13 ---------------===//
//
// By the version history in ONNX's Changelog.md.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/reader/Upgrade.h"

#include "frontend/onnx/reader/HostTensor.h"

#include <map>

namespace gpuc::onnx {
namespace {

/// Attributes that became inputs of these numbers, and up to which opset they were attributes.
struct Moved {
  int64_t last;
  std::vector<std::pair<const char *, size_t>> attributes;
};
const std::map<std::string, Moved> &movedAttributes() {
  static const std::map<std::string, Moved> all = {
      {"Clip", {10, {{"min", 1}, {"max", 2}}}},
      {"Dropout", {11, {{"ratio", 1}}}},
      {"Pad", {10, {{"pads", 1}, {"value", 2}}}},
      {"ReduceSum", {12, {{"axes", 1}}}},
      {"Slice", {9, {{"starts", 1}, {"ends", 2}, {"axes", 3}}}},
      {"Split", {12, {{"split", 1}}}},
      {"Squeeze", {12, {{"axes", 1}}}},
      {"TopK", {9, {{"k", 1}}}},
      {"Unsqueeze", {12, {{"axes", 1}}}},
      {"Upsample", {8, {{"scales", 1}}}},
  };
  return all;
}

Node constantNode(const std::string &name, HostTensorPtr value) {
  Node node;
  node.name = name;
  node.op = "Constant";
  node.outputs = {name};
  node.attributes.push_back({.name = "value", .reference = "", .value = std::move(value)});
  return node;
}

void dropAttribute(Node &node, const std::string &name) {
  std::erase_if(node.attributes, [&](const NodeAttribute &attribute) { return attribute.name == name; });
}

/// Resize of opset 10, and Upsample before it: pixels are their corners, and there is no `roi`.
void upgradeResize(Node &node, int64_t opset) {
  if (node.op == "Upsample" || opset == 10)
    node.inputs.insert(node.inputs.begin() + (node.inputs.empty() ? 0 : 1), "");
  const bool ofOpset10 = node.op == "Resize" && opset == 10;
  node.op = "Resize";
  if (node.find("coordinate_transformation_mode"))
    return;
  auto setText = [&](const char *name, const char *text) {
    node.attributes.push_back({.name = name, .reference = "", .value = std::string(text)});
  };
  setText("coordinate_transformation_mode", "asymmetric");
  setText("nearest_mode", ofOpset10 ? kNearestOfOpset10 : "floor");
}

class Upgrader {
public:
  explicit Upgrader(int64_t opset) : opset_(opset) {}

  void run(std::vector<Node> &nodes) {
    std::vector<Node> upgraded;
    for (Node &node : nodes) {
      move(node, upgraded);
      if (node.op == "Upsample" || (node.op == "Resize" && opset_ == 10))
        upgradeResize(node, opset_);
      if (node.op == "Scatter")
        node.op = "ScatterElements";
      if (const NodeAttribute *spatial = node.find("spatial"); node.op == "BatchNormalization" && spatial)
        if (spatial->as<int64_t>() && *spatial->as<int64_t>() == 1)
          dropAttribute(node, "spatial");
      for (NodeAttribute &attribute : node.attributes)
        if (attribute.graph()) {
          auto body = std::make_shared<Graph>(*attribute.graph());
          run(body->nodes);
          attribute.value = std::shared_ptr<const Graph>(body);
        }
      upgraded.push_back(std::move(node));
    }
    nodes = std::move(upgraded);
  }

private:
  /// Puts Constants for the attributes that have become inputs before the node.
  void move(Node &node, std::vector<Node> &before) {
    auto found = movedAttributes().find(node.op);
    if (found == movedAttributes().end() || opset_ > found->second.last)
      return;
    for (auto [name, input] : found->second.attributes) {
      const NodeAttribute *attribute = node.find(name);
      HostTensorPtr value = attribute && !attribute->tensor() ? tensorOf(*attribute) : nullptr;
      if (!value)
        continue;
      if (node.inputs.size() <= input)
        node.inputs.resize(input + 1);
      // No file has a name with a line's end in it.
      node.inputs[input] = node.name + "." + name + "\n" + std::to_string(made_++);
      before.push_back(constantNode(node.inputs[input], value));
      dropAttribute(node, name);
    }
  }

  int64_t opset_;
  int64_t made_ = 0;
};

} // namespace

void upgrade(Model &model) {
  if (model.opset >= 13)
    return;
  Upgrader upgrader(model.opset);
  upgrader.run(model.graph.nodes);
  for (Function &function : model.functions)
    upgrader.run(function.nodes);
}

} // namespace gpuc::onnx
