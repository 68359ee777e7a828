//===- Subgraphs.cpp - Functions, branches and bodies of loops --------------===//
//
// What a node brings along as a graph of its own. Functions and branches are put in place; a loop's body
// becomes the region of a gpuc.scan.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Importer.h"

namespace gpuc::onnx {

constexpr int kDeepest = 32; // Of calls, branches and loops in one another.

const Function *Importer::findFunction(const Node &node) const {
  for (const Function &function : model_.functions)
    if (function.name == node.op && function.domain == node.domain)
      return &function;
  return nullptr;
}

/// The function's nodes with the call's attributes in the place of references to them.
static std::vector<Node> bindAttributes(const Function &function, const Node &call) {
  std::vector<Node> nodes = function.nodes;
  for (Node &node : nodes) {
    std::vector<NodeAttribute> bound;
    for (NodeAttribute &attribute : node.attributes) {
      if (attribute.reference.empty()) {
        bound.push_back(std::move(attribute));
      } else if (const NodeAttribute *given = call.find(attribute.reference)) {
        bound.push_back(*given);
        bound.back().name = attribute.name;
      } else {
        for (const NodeAttribute &otherwise : function.defaults)
          if (otherwise.name == attribute.reference) {
            bound.push_back(otherwise);
            bound.back().name = attribute.name;
          }
      }
    }
    node.attributes = std::move(bound);
  }
  return nodes;
}

void Importer::call(const Function &function, NodeScope &scope) {
  if (llvm::is_contained(calls_, &function) || depth_ >= kDeepest)
    return void(scope.fail(llvm::is_contained(calls_, &function) ? "the function calls itself"
                                                                 : "calls of functions go too deep"));
  NameScope names;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    if (scope.has(i))
      define(names, function.inputs[i], scope.operand(i), "function '" + function.name + "'");
  ++depth_;
  calls_.push_back(&function);
  std::string outer = std::exchange(prefix_, prefix_ + scope.node.name + "/");
  std::vector<Node> nodes = bindAttributes(function, scope.node);
  runNodes(nodes, names);
  prefix_ = outer;
  calls_.pop_back();
  --depth_;
  for (size_t i = 0; i < function.outputs.size() && i < scope.outputs.size(); ++i)
    if (Operand *result = names.find(function.outputs[i]))
      scope.outputs[i] = *result;
}

std::vector<Operand> Importer::runBranch(const Graph &branch) {
  if (depth_ >= kDeepest) {
    emitter_.fail("branches go too deep");
    return {};
  }
  NameScope names(current_);
  ++depth_;
  bindInitializers(branch, names);
  runNodes(branch.nodes, names);
  --depth_;
  std::vector<Operand> results;
  for (const ValueInfo &output : branch.outputs) {
    Operand *result = names.find(output.name);
    if (!result || result->failed) {
      emitter_.fail("the branch that is taken has no output '" + output.name + "'");
      return {};
    }
    results.push_back(*result);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Names that the nodes read, those of graphs inside of them too, and that none of them defines.
static void collectFreeNames(const Graph &graph, std::set<std::string> defined, std::set<std::string> &free) {
  for (const ValueInfo &input : graph.inputs)
    defined.insert(input.name);
  for (const auto &[name, tensor] : graph.initializers)
    defined.insert(name);
  auto use = [&](const std::string &name) {
    if (!name.empty() && !defined.count(name))
      free.insert(name);
  };
  for (const Node &node : graph.nodes) {
    for (const std::string &name : node.inputs)
      use(name);
    for (const NodeAttribute &attribute : node.attributes)
      if (attribute.graph())
        collectFreeNames(*attribute.graph(), defined, free);
    defined.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueInfo &output : graph.outputs)
    use(output.name);
}

/// What the body sees of the graph around it. Small constants are made in it; all else is made outside, and
/// captured under the names that are returned. What is captured of the weights is no weight any more.
std::vector<std::string> Importer::capture(const Graph &body, NameScope &names,
                                           std::vector<Tensor> &captures) {
  constexpr int64_t kMostCopiedElements = 64;
  NameScope around(current_);
  bindInitializers(body, around);
  std::set<std::string> free;
  collectFreeNames(body, {}, free);
  for (const auto &[name, tensor] : body.initializers)
    free.insert(name);
  std::vector<std::string> captured;
  for (const std::string &name : free) {
    Operand *outer = around.find(name);
    if (!outer)
      continue; // The node that reads it says so.
    const bool isConstant =
        outer->known && !outer->weight && outer->known->spec.elementCount() <= kMostCopiedElements;
    if (outer->failed || !outer->absent.empty() || isConstant) {
      Operand copy = *outer;
      copy.tensor = {};
      names.define(name, std::move(copy));
    } else {
      captures.push_back(materialize(*outer));
      captured.push_back(name);
    }
  }
  return captured;
}

LoopValues Importer::runBody(const Graph &body, NameScope &names, size_t states) {
  mlir::Location location = emitter_.location;
  std::string outer = std::exchange(prefix_, prefix_ + body.name + (body.name.empty() ? "" : "/"));
  ++depth_, ++loops_;
  runNodes(body.nodes, names);
  --depth_, --loops_;
  prefix_ = outer;
  emitter_.location = location;
  LoopValues values;
  for (const ValueInfo &output : body.outputs) {
    Operand *result = names.find(output.name);
    if (!result || result->failed || !result->absent.empty())
      return emitter_.fail("its body does not compute the output '" + output.name + "'");
    (values.carried.size() < states ? values.carried : values.outputs).push_back(materialize(*result));
  }
  return values;
}

LoopValues Importer::runLoop(const Graph &body, const std::vector<Tensor> &states,
                             const std::vector<Tensor> &inputs, LoopOptions options) {
  if (depth_ >= kDeepest)
    return emitter_.fail("loops go too deep");
  if (body.inputs.size() != states.size() + inputs.size() || body.outputs.size() < states.size())
    return emitter_.fail("its body has " + std::to_string(body.inputs.size()) + " inputs and " +
                         std::to_string(body.outputs.size()) + " outputs, expected " +
                         std::to_string(states.size() + inputs.size()) + " inputs and at least " +
                         std::to_string(states.size()) + " outputs");
  NameScope names;
  std::vector<Tensor> captures;
  std::vector<std::string> captured = capture(body, names, captures);
  const size_t problems = out_.problems.size();
  LoopValues values =
      loop(emitter_, inputs, states, captures, options,
           [&](const std::vector<Tensor> &slices, const std::vector<Tensor> &carried,
               const std::vector<Tensor> &inside) {
             auto bind = [&](const std::string &name, const Tensor &tensor) {
               Operand operand;
               operand.tensor = tensor;
               define(names, name, std::move(operand), "body '" + body.name + "'");
             };
             for (size_t i = 0; i < captured.size(); ++i)
               bind(captured[i], inside[i]);
             for (size_t i = 0; i < body.inputs.size(); ++i)
               bind(body.inputs[i].name, i < carried.size() ? carried[i] : slices[i - carried.size()]);
             return runBody(body, names, states.size());
           });
  if (out_.problems.size() > problems)
    emitter_.takeError(); // It only repeats what its nodes have said.
  return values;
}

} // namespace gpuc::onnx
