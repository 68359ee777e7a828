//===- Distances.cpp - Distances that an exporter writes without their Abs --===//

#include "frontend/onnx/Distances.h"

#include "frontend/onnx/reader/HostTensor.h"

#include <cmath>

namespace gpuc::onnx {
namespace {

/// Who makes what, and which numbers are known.
class Makers {
public:
  explicit Makers(const Graph &graph) {
    for (const auto &[name, tensor] : graph.initializers)
      known_[name] = tensor;
    for (const Node &node : graph.nodes)
      if (node.outputs.size() == 1)
        made_[node.outputs.front()] = &node;
  }

  /// The node that makes the node's first input, if it is of this op.
  const Node *before(const Node *node, const char *op) const {
    auto maker = node && !node->inputs.empty() ? made_.find(node->inputs.front()) : made_.end();
    return maker != made_.end() && maker->second->op == op ? maker->second : nullptr;
  }

  /// What a Pow raises to, if that is one number which is known.
  std::optional<double> exponentOf(const Node &pow) const {
    HostTensorPtr tensor = pow.inputs.size() == 2 ? find(pow.inputs[1]) : nullptr;
    if (!tensor || !tensor->supported || tensor->spec.elementCount() != 1)
      return std::nullopt;
    return numbersOf(*tensor).front();
  }

private:
  HostTensorPtr find(const std::string &name) const {
    if (auto known = known_.find(name); known != known_.end())
      return known->second;
    auto maker = made_.find(name);
    const bool isConstant = maker != made_.end() && maker->second->op == "Constant";
    const NodeAttribute *value = isConstant ? maker->second->find("value") : nullptr;
    return value ? value->tensor() : nullptr;
  }

  std::map<std::string, HostTensorPtr> known_;
  std::map<std::string, const Node *> made_;
};

} // namespace

std::vector<const Node *> signedDistances(const Graph &graph) {
  const Makers makers(graph);
  std::vector<const Node *> found;
  for (const Node &root : graph.nodes) {
    if (root.op != "Pow")
      continue;
    const Node *power = makers.before(makers.before(&root, "ReduceSum"), "Pow");
    if (!makers.before(power, "Sub"))
      continue;
    std::optional<double> outer = makers.exponentOf(root), inner = makers.exponentOf(*power);
    const bool isRoot = outer && inner && std::abs(*outer * *inner - 1) < 1e-6;
    if (isRoot && std::fmod(*inner, 2) != 0)
      found.push_back(&root);
  }
  return found;
}

} // namespace gpuc::onnx
