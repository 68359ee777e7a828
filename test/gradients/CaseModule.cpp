//===- CaseModule.cpp - Modules and inputs made from a case ------------------===//

#include "test/gradients/CaseModule.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace mlir;

namespace gpuc::gradients {

using reference::Tensor;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string withElement(std::string text, const std::string &element) {
  for (size_t at; (at = text.find("$T")) != std::string::npos;)
    text.replace(at, 2, element);
  return text;
}

static std::string join(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

namespace {
/// Arguments of a function, given as types; the names are a prefix with a number.
struct Arguments {
  std::vector<std::string> names, types;

  void add(const std::string &prefix, const std::string &type) {
    names.push_back("%" + prefix + std::to_string(names.size()));
    types.push_back(tensor(type));
  }
  std::string declaration() const {
    std::vector<std::string> parts;
    for (size_t i = 0; i < names.size(); ++i)
      parts.push_back(names[i] + ": " + types[i] + " {gpuc.name = \"" + names[i].substr(1) + "\"}");
    return join(parts);
  }
};
} // namespace

static Arguments inputsOf(const Case &described) {
  Arguments arguments;
  for (const Input &input : described.inputs)
    arguments.add("x", input.type);
  return arguments;
}

std::vector<int64_t> differentiated(const Case &described) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < described.inputs.size(); ++i)
    if (described.inputs[i].isReal() && described.inputs[i].differentiate)
      numbers.push_back(static_cast<int64_t>(i));
  return numbers;
}

static std::string forwardText(const Case &described) {
  std::vector<std::string> names, types, results;
  for (const Output &output : described.outputs) {
    names.push_back(output.name);
    types.push_back(tensor(output.type));
    results.push_back(types.back() + " {gpuc.name = \"" + output.name.substr(1) + "\"}");
  }
  return "gpuc.variable @seed kind counter : tensor<i64> init zeros\n"
         "gpuc.variable @step kind counter : tensor<i64> init zeros\n"
         "func.func @f(" +
         inputsOf(described).declaration() + ") -> (" + join(results) + ") {\n" + described.body +
         "\nreturn " + join(names) + " : " + join(types) + "\n}\n";
}

std::string forwardModule(const Case &described, const std::string &element) {
  return withElement(forwardText(described), element);
}

/// `%<to> = Σ a · b` over all dimensions of the type.
static std::string innerProduct(const std::string &to, const std::string &a, const std::string &b,
                                const std::string &type) {
  std::string product = to + "_product", dims;
  int64_t rank = std::count(type.begin(), type.end(), 'x');
  for (int64_t dim = 0; dim < rank; ++dim)
    dims += (dim ? ", " : "") + std::to_string(dim);
  return product + " = gpuc.mul " + a + ", " + b + " : " + tensor(type) + "\n" + to + " = gpuc.sum " +
         product + " dims [" + dims + "] : (" + tensor(type) + ") -> tensor<$T>\n";
}

static std::string objectiveText(const Case &described) {
  Arguments inputs = inputsOf(described), all = inputs;
  const Output &y = described.outputs.front();
  all.add("w", y.type);
  std::vector<std::string> results, names;
  for (size_t i = 0; i < described.outputs.size(); ++i) {
    results.push_back(tensor(described.outputs[i].type));
    names.push_back("%r" + std::to_string(i));
  }
  return "func.func private @objective(" + all.declaration() + ") -> tensor<$T> {\n" + join(names) +
         " = call @f(" + join(inputs.names) + ") : (" + join(inputs.types) + ") -> (" + join(results) +
         ")\n" + innerProduct("%s", "%r0", all.names.back(), y.type) + "return %s : tensor<$T>\n}\n";
}

/// @name(arguments) → the gradient of `callee` by the differentiated inputs.
static std::string gradientText(const Case &described, const std::string &name, const std::string &callee,
                                const Arguments &arguments) {
  std::vector<std::string> values = {"%value"}, types, numbers;
  for (int64_t input : differentiated(described)) {
    values.push_back("%d" + std::to_string(input));
    types.push_back(tensor(described.inputs[input].type));
    numbers.push_back(std::to_string(input));
  }
  std::string gradients = join({values.begin() + 1, values.end()});
  return "func.func private @" + name + "(" + arguments.declaration() + ") -> (" + join(types) + ") {\n" +
         join(values) + " = gpuc.gradient @" + callee + "(" + join(arguments.names) + ") wrt arguments [" +
         join(numbers) + "] : (" + join(arguments.types) + ") -> (tensor<$T>, " + join(types) + ")\nreturn " +
         gradients + " : " + join(types) + "\n}\n";
}

static std::string directionalText(const Case &described, const Arguments &first, const Arguments &all) {
  std::vector<std::string> values, types;
  std::string sums, total;
  size_t direction = first.names.size();
  for (int64_t input : differentiated(described)) {
    std::string number = std::to_string(input), type = described.inputs[input].type;
    values.push_back("%d" + number);
    types.push_back(tensor(type));
    sums += innerProduct("%s" + number, "%d" + number, all.names[direction++], type);
    if (!total.empty())
      sums += "%t" + number + " = gpuc.add " + total + ", %s" + number + " : tensor<$T>\n";
    total = (total.empty() ? "%s" : "%t") + number;
  }
  return "func.func private @directional(" + all.declaration() + ") -> tensor<$T> {\n" + join(values) +
         " = call @gradient(" + join(first.names) + ") : (" + join(first.types) + ") -> (" + join(types) +
         ")\n" + sums + "return " + total + " : tensor<$T>\n}\n";
}

std::string gradientModule(const Case &described) {
  Arguments first = inputsOf(described);
  first.add("w", described.outputs.front().type);
  Arguments all = first;
  for (int64_t input : differentiated(described))
    all.add("u", described.inputs[input].type);
  std::string text = forwardText(described) + objectiveText(described) +
                     gradientText(described, "gradient", "objective", first) +
                     directionalText(described, first, all) +
                     gradientText(described, "second", "directional", all);
  return withElement(text, "f64");
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Numbers from a generator whose bits the standard fixes, unlike its distributions'.
static double draw(std::mt19937_64 &generator, double low, double high) {
  return low + (high - low) * std::ldexp(static_cast<double>(generator() >> 11), -53);
}

std::vector<Tensor> makeArguments(const Case &described, func::FuncOp function) {
  std::vector<Tensor> arguments;
  for (BlockArgument argument : function.getArguments()) {
    size_t number = argument.getArgNumber();
    Input input = number < described.inputs.size() ? described.inputs[number] : Input{};
    std::string name = described.testName() + std::to_string(number);
    std::seed_seq seed(name.begin(), name.end());
    std::mt19937_64 generator(seed);
    Tensor tensor(reference::typeOf(argument));
    std::vector<double> values = input.values;
    while (static_cast<int64_t>(values.size()) < tensor.size())
      values.push_back(tensor.isFloat() ? draw(generator, input.low, input.high)
                                        : std::floor(draw(generator, input.low, input.high + 1)));
    for (double &value : values)
      if (tensor.isFloat())
        value = reference::rounded(value, tensor.type.getElementType());
    arguments.emplace_back(tensor.type, values);
  }
  return arguments;
}

reference::Interpreter makeInterpreter(MLIRContext *context) {
  reference::Interpreter interpreter;
  auto counter = RankedTensorType::get({}, IntegerType::get(context, 64));
  interpreter.variables["seed"] = Tensor(counter, {double(seedValue)});
  interpreter.variables["step"] = Tensor(counter, {double(stepValue)});
  return interpreter;
}

} // namespace gpuc::gradients
