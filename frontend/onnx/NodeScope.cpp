//===- NodeScope.cpp - What the lowering of one node sees -------------------===//

#include "frontend/onnx/NodeScope.h"

#include "frontend/onnx/Importer.h"

using namespace mlir;

namespace gpuc::onnx {

Tensor NodeScope::input(size_t index) {
  if (!has(index))
    return fail("input " + std::to_string(index) + " is missing");
  return importer_.materialize(*inputs_[index]);
}

std::vector<Tensor> NodeScope::allInputs() {
  std::vector<Tensor> all;
  for (size_t i = 0; i < inputs_.size(); ++i)
    all.push_back(input(i));
  return all;
}

Shape NodeScope::shapeOf(size_t index) const {
  if (!has(index))
    return {};
  const Operand &operand = *inputs_[index];
  return operand.known ? operand.known->spec.shape : operand.tensor.shape();
}

DataType NodeScope::typeOf(size_t index) const {
  if (!has(index))
    return DataType::f32;
  const Operand &operand = *inputs_[index];
  return operand.known ? operand.known->spec.type : operand.tensor.type();
}

HostTensorPtr NodeScope::known(size_t index) const {
  return has(index) && !inputs_[index]->weight ? inputs_[index]->known : nullptr;
}

HostTensorPtr NodeScope::require(size_t index, const char *role) {
  if (!has(index))
    return fail(std::string("input ") + std::to_string(index) + " (" + role + ") is missing");
  const Operand &operand = *inputs_[index];
  if (operand.known && operand.known->supported)
    return operand.known;
  std::string from;
  for (const std::string &origin : operand.origins)
    from += (from.empty() ? "; it comes from the graph's input '" : "', '") + origin;
  unknownOrigins_.insert(operand.origins.begin(), operand.origins.end());
  return fail("input " + std::to_string(index) + " (" + role + ") must be known when the model is imported" +
              (from.empty() ? "" : from + "'"));
}

std::optional<Shape> NodeScope::requireIntegers(size_t index, const char *role) {
  HostTensorPtr tensor = require(index, role);
  if (!tensor)
    return std::nullopt;
  return integersOf(*tensor);
}

std::optional<double> NodeScope::requireNumber(size_t index, const char *role) {
  HostTensorPtr tensor = require(index, role);
  if (!tensor)
    return std::nullopt;
  std::vector<double> numbers = numbersOf(*tensor);
  if (numbers.size() == 1)
    return numbers.front();
  return fail("input " + std::to_string(index) + " (" + role + ") must be one number, but has shape " +
              toString(tensor->spec.shape));
}

template <typename Value>
Value NodeScope::attribute(const char *name, const char *kind, const Value &otherwise) {
  const NodeAttribute *attribute = node.find(name);
  const Value *value = attribute ? attribute->as<Value>() : nullptr;
  if (attribute && !value)
    fail(std::string("attribute '") + name + "' is not " + kind);
  return value ? *value : otherwise;
}

int64_t NodeScope::integer(const char *name, int64_t otherwise) {
  return attribute<int64_t>(name, "an integer", otherwise);
}

double NodeScope::number(const char *name, double otherwise) {
  return attribute<double>(name, "a number", otherwise);
}

std::string NodeScope::text(const char *name, const std::string &otherwise) {
  return attribute<std::string>(name, "text", otherwise);
}

Shape NodeScope::integers(const char *name, const Shape &otherwise) {
  return attribute<Shape>(name, "a list of integers", otherwise);
}

std::vector<double> NodeScope::numbers(const char *name) {
  return attribute<std::vector<double>>(name, "a list of numbers", {});
}

std::vector<std::string> NodeScope::texts(const char *name, const std::vector<std::string> &otherwise) {
  return attribute<std::vector<std::string>>(name, "a list of texts", otherwise);
}

std::optional<Shape> NodeScope::attributeOrInput(const char *name, size_t index) {
  if (hasAttribute(name))
    return integers(name, {});
  return has(index) ? requireIntegers(index, name) : std::nullopt;
}

void NodeScope::output(const Tensor &value, size_t index) {
  if (index < outputs.size())
    outputs[index].tensor = value;
}

void NodeScope::output(HostTensorPtr value, size_t index) {
  if (index < outputs.size())
    outputs[index].known = std::move(value);
}

} // namespace gpuc::onnx
