//===- NodeScope.h - What the lowering of one node sees ---------------------===//
#pragma once

#include "frontend/onnx/Exporter.h"
#include "frontend/onnx/Tensor.h"
#include "frontend/onnx/reader/HostTensor.h"

#include <set>

namespace gpuc::onnx {

/// What a name in the graph stands for: a value of the function being built, elements that are known, or
/// both.
struct Operand {
  Tensor tensor;                                       ///< Made when it is first asked for.
  HostTensorPtr known;                                 ///< Null if the elements are known only at run time.
  std::shared_ptr<const std::vector<Tensor>> sequence; ///< A list of tensors, which is no tensor itself.
  std::string name;                                    ///< In the graph.
  bool weight = false;             ///< It becomes a variable, and its elements may change in training.
  Origin origin = Origin::unknown; ///< Of an initializer: what it was in the model that was exported.
  bool statistic = false;          ///< A weight that batch norm assigns.
  std::string absent;              ///< Not empty if gpuc does not compute it: who does.
  std::set<std::string> origins;   ///< The graph's inputs that a small tensor was computed from.
  bool failed = false;             ///< It could not be computed, and the reason has been reported.
};

class Importer;

/// One node: its inputs, attributes and outputs. What is wrong is reported by fail(); after that everything
/// is empty.
class NodeScope {
public:
  NodeScope(Importer &importer, Emitter &emitter, const Node &node, std::vector<Operand *> inputs)
      : node(node), emitter(emitter), outputs(node.outputs.size()), importer_(importer),
        inputs_(std::move(inputs)) {}

  Failure fail(const std::string &text) { return emitter.fail(text); }
  bool failed() const { return emitter.failed(); }

  //===-- Inputs -----------------------------------------------------------===//

  size_t inputCount() const { return inputs_.size(); }
  bool has(size_t index) const { return index < inputs_.size() && inputs_[index]; }
  /// As a value; an error if it is left out.
  Tensor input(size_t index);
  std::vector<Tensor> allInputs();
  /// The shape, whether the elements are known or not.
  Shape shapeOf(size_t index) const;
  DataType typeOf(size_t index) const;
  /// The elements if they are known; weights count as not known.
  HostTensorPtr known(size_t index) const;
  /// The elements, which the lowering cannot do without; an error that calls the input `role` if they are not
  /// known.
  HostTensorPtr require(size_t index, const char *role);
  std::optional<Shape> requireIntegers(size_t index, const char *role);
  std::optional<double> requireNumber(size_t index, const char *role);
  /// Graph inputs that could give what require() found unknown.
  const std::set<std::string> &unknownOrigins() const { return unknownOrigins_; }
  Operand &operand(size_t index) { return *inputs_[index]; }

  //===-- Attributes -------------------------------------------------------===//

  bool hasAttribute(const char *name) const { return node.find(name) != nullptr; }
  int64_t integer(const char *name, int64_t otherwise);
  double number(const char *name, double otherwise);
  std::string text(const char *name, const std::string &otherwise);
  Shape integers(const char *name, const Shape &otherwise);
  std::vector<double> numbers(const char *name);
  std::vector<std::string> texts(const char *name, const std::vector<std::string> &otherwise);
  /// A list that is an attribute or, in newer opsets, input `index`; none if neither is given.
  std::optional<Shape> attributeOrInput(const char *name, size_t index);

  //===-- Outputs ----------------------------------------------------------===//

  /// Whether anything may read output `index`.
  bool wants(size_t index) const { return index < node.outputs.size() && !node.outputs[index].empty(); }
  void output(const Tensor &value, size_t index = 0);
  void output(HostTensorPtr value, size_t index = 0);

  Importer &importer() { return importer_; }

  const Node &node;
  Emitter &emitter;
  std::vector<Operand> outputs;

private:
  template <typename Value> Value attribute(const char *name, const char *kind, const Value &otherwise);

  Importer &importer_;
  std::vector<Operand *> inputs_;
  std::set<std::string> unknownOrigins_;
};

} // namespace gpuc::onnx
