//===- OpScope.cpp - What the lowering of one op sees -------------------------===//

#include "frontend/torch/OpScope.h"

namespace gpuc::torch {

bool OpScope::has(const char *name) const {
  const Argument *argument = node.find(name);
  return argument && !argument->as<std::monostate>();
}

bool OpScope::isTensor(const char *name) const {
  const Argument *argument = node.find(name);
  return argument && argument->as<Reference>();
}

template <typename Value> const Value *OpScope::get(const char *name, const char *kind) {
  const Argument *argument = has(name) ? node.find(name) : nullptr;
  const Value *value = argument ? argument->as<Value>() : nullptr;
  if (argument && !value)
    fail(std::string("argument '") + name + "' is not " + kind);
  return value;
}

Tensor OpScope::tensor(const char *name) {
  if (!has(name))
    return fail(std::string("argument '") + name + "' is missing");
  const Reference *reference = get<Reference>(name, "a tensor");
  return reference ? resolve_(*reference) : Tensor();
}

std::vector<Tensor> OpScope::tensors(const char *name) {
  const auto *list = get<std::vector<Argument>>(name, "a list of tensors");
  std::vector<Tensor> all;
  for (const Argument &element : list ? *list : std::vector<Argument>()) {
    const Reference *reference = element.as<Reference>();
    if (!reference)
      return fail(std::string("argument '") + name + "' is not a list of tensors");
    all.push_back(resolve_(*reference));
  }
  return all;
}

std::vector<Tensor> OpScope::optionalTensors(const char *name) {
  const auto *list = get<std::vector<Argument>>(name, "a list of tensors");
  std::vector<Tensor> all;
  for (const Argument &element : list ? *list : std::vector<Argument>()) {
    const Reference *reference = element.as<Reference>();
    all.push_back(reference ? resolve_(*reference) : Tensor());
  }
  return all;
}

Tensor OpScope::operand(const char *name, DataType type) {
  if (isTensor(name))
    return cast(tensor(name), type);
  return failed() ? Tensor() : emitter.constant({}, type, number(name, 0));
}

int64_t OpScope::integer(const char *name, int64_t otherwise) {
  const auto *value = get<int64_t>(name, "an integer");
  return value ? *value : otherwise;
}

double OpScope::number(const char *name, double otherwise) {
  const Argument *argument = node.find(name);
  if (const auto *integer = argument ? argument->as<int64_t>() : nullptr)
    return static_cast<double>(*integer);
  if (const auto *flag = argument ? argument->as<bool>() : nullptr)
    return *flag;
  const auto *value = get<double>(name, "a number");
  return value ? *value : otherwise;
}

bool OpScope::flag(const char *name, bool otherwise) {
  const auto *value = get<bool>(name, "a truth value");
  return value ? *value : otherwise;
}

std::string OpScope::text(const char *name, const std::string &otherwise) {
  const auto *value = get<std::string>(name, "text");
  return value ? *value : otherwise;
}

Shape OpScope::integers(const char *name, const Shape &otherwise, size_t count) {
  const Argument *argument = node.find(name);
  if (const auto *one = argument ? argument->as<int64_t>() : nullptr)
    return Shape(std::max<size_t>(count, 1), *one);
  const auto *list = get<std::vector<Argument>>(name, "a list of integers");
  if (!list)
    return otherwise;
  Shape values;
  for (const Argument &element : *list)
    if (const auto *value = element.as<int64_t>())
      values.push_back(*value);
    else
      return fail(std::string("argument '") + name + "' is not a list of integers"), otherwise;
  if (values.size() == 1 && count > 1)
    values.assign(count, values.front());
  return values.empty() ? otherwise : values;
}

std::vector<double> OpScope::numbers(const char *name) {
  std::vector<double> values;
  const auto *list = get<std::vector<Argument>>(name, "a list of numbers");
  for (const Argument &element : list ? *list : std::vector<Argument>())
    if (const auto *integer = element.as<int64_t>())
      values.push_back(static_cast<double>(*integer));
    else if (const auto *number = element.as<double>())
      values.push_back(*number);
  return values;
}

const TensorSpec &OpScope::spec(size_t index) const {
  static const TensorSpec none;
  return index < node.results.size() ? node.results[index] : none;
}

void OpScope::output(const Tensor &value, size_t index) {
  if (index < outputs.size())
    outputs[index] = value;
}

} // namespace gpuc::torch
