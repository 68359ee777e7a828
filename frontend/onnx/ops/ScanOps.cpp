//===- ScanOps.cpp - Scan: a loop over time whose body is a graph -----------===//

#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/OpTable.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace gpuc::onnx {
namespace {

/// x with dimension `from` at place `to`, the others in order.
Tensor moveDim(const Tensor &x, int64_t from, int64_t to) {
  if (!x)
    return {};
  if (x.hasBatch() && from != to && (from == 0 || to == 0))
    return x.emitter()->fail("loops along the batch, which is open: bind it with --dim NAME=N");
  Shape permutation;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != from)
      permutation.push_back(d);
  permutation.insert(permutation.begin() + to, from);
  return transpose(x, permutation);
}

/// The attribute, which has one number for each of `count` inputs or outputs; 0 if it is left out.
Shape each(NodeScope &node, const char *name, size_t count) {
  Shape numbers = node.integers(name, Shape(count, 0));
  if (numbers.size() != count)
    node.fail(std::string("attribute '") + name + "' has " + std::to_string(numbers.size()) +
              " numbers, expected " + std::to_string(count));
  return numbers;
}

bool isBackwards(int64_t direction) { return direction != 0; }

/// A Scan's attributes, one number for each input or output that has steps.
struct Steps {
  const Graph *body = nullptr;
  size_t inputs = 0, outputs = 0;
  Shape inputAxes, inputDirections, outputAxes, outputDirections;

  /// All goes backwards: the loop itself does, and nothing need be reversed.
  bool allBackwards() const {
    return llvm::all_of(inputDirections, isBackwards) && llvm::all_of(outputDirections, isBackwards);
  }
};

/// Reads and checks the attributes of a node that has `operands` inputs.
std::optional<Steps> readSteps(NodeScope &node, size_t operands) {
  const NodeAttribute *body = node.node.find("body");
  const int64_t count = node.integer("num_scan_inputs", 0);
  if (node.failed())
    return std::nullopt;
  if (!body || !body->graph() || count < 1 || count > static_cast<int64_t>(operands))
    return node.fail("needs a body, and at least as many inputs as the " + std::to_string(count) +
                     " of num_scan_inputs, which is at least 1");
  Steps steps;
  steps.body = body->graph();
  steps.inputs = count;
  const size_t results = node.outputs.size();
  if (steps.body->outputs.size() < results)
    return node.fail("has " + std::to_string(results) + " outputs, but its body only " +
                     std::to_string(steps.body->outputs.size()));
  steps.outputs = results - std::min(results, operands - steps.inputs);
  steps.inputAxes = each(node, "scan_input_axes", steps.inputs);
  steps.inputDirections = each(node, "scan_input_directions", steps.inputs);
  steps.outputAxes = each(node, "scan_output_axes", steps.outputs);
  steps.outputDirections = each(node, "scan_output_directions", steps.outputs);
  return node.failed() ? std::nullopt : std::optional(steps);
}

/// The input with time as dimension `time`, in the loop's direction.
Tensor enter(Tensor input, int64_t axis, bool reversed, int64_t time) {
  const int64_t dim = dimension(input, axis);
  if (dim < 0)
    return {};
  if (input.rank() <= time)
    return input.emitter()->fail("input of shape " + toString(input.shape()) +
                                 " has no batch, but another has an open one: bind it with --dim NAME=N");
  input = moveDim(input, dim, time);
  return reversed ? reverse(input, {time}) : input;
}

/// The output with dimension `time` moved to `axis`, in the order that the node asks for.
Tensor leave(Tensor output, int64_t axis, bool reversed, int64_t time) {
  const int64_t dim = dimension(output, axis);
  if (reversed)
    output = reverse(output, {time});
  return dim < 0 ? Tensor() : moveDim(output, time, dim);
}

/// Time goes to the front, or behind the batch if that is open. What goes backwards is reversed, unless all
/// does.
void lowerScan(NodeScope &node) {
  std::vector<Tensor> states = node.allInputs();
  std::optional<Steps> steps = readSteps(node, states.size());
  if (!steps)
    return;
  LoopOptions options;
  options.batchFirst = llvm::any_of(states, [](const Tensor &x) { return x.hasBatch(); });
  options.reverse = steps->allBackwards();
  const int64_t time = options.batchFirst ? 1 : 0;
  auto reversed = [&](int64_t direction) { return isBackwards(direction) && !options.reverse; };

  std::vector<Tensor> inputs(states.end() - steps->inputs, states.end());
  states.resize(states.size() - steps->inputs);
  for (auto [input, axis, direction] : llvm::zip_equal(inputs, steps->inputAxes, steps->inputDirections))
    input = enter(input, axis, reversed(direction), time);
  if (node.failed())
    return;
  LoopValues values = node.importer().runLoop(*steps->body, states, inputs, options);
  if (node.failed() || values.outputs.size() < steps->outputs)
    return; // The body's nodes have said why.
  for (size_t i = 0; i < values.carried.size(); ++i)
    node.output(values.carried[i], i);
  for (size_t i = 0; i < steps->outputs; ++i)
    node.output(leave(values.outputs[i], steps->outputAxes[i], reversed(steps->outputDirections[i]), time),
                values.carried.size() + i);
}

} // namespace

void addScan(OpTable &table) {
  table["Scan"] = {lowerScan,
                   {"body", "num_scan_inputs", "scan_input_axes", "scan_input_directions", "scan_output_axes",
                    "scan_output_directions"}};
}

} // namespace gpuc::onnx
