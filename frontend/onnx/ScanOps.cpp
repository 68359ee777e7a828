//===- ScanOps.cpp - Scan: a loop over time whose body is a graph -----------===//

#include "frontend/onnx/Importer.h"
#include "frontend/onnx/OpTable.h"

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
std::optional<Shape> each(NodeScope &node, const char *name, size_t count) {
  Shape numbers = node.integers(name, Shape(count, 0));
  if (numbers.size() == count)
    return numbers;
  node.fail(std::string("attribute '") + name + "' has " + std::to_string(numbers.size()) +
            " numbers, expected " + std::to_string(count));
  return std::nullopt;
}

bool isBackwards(int64_t direction) { return direction != 0; }

/// Time goes to the front, or behind the batch if that is open. What goes backwards is reversed, unless all
/// does.
void lowerScan(NodeScope &node) {
  const NodeAttribute *body = node.node.find("body");
  std::vector<Tensor> states = node.allInputs(), inputs;
  const int64_t count = node.integer("num_scan_inputs", 0);
  if (node.failed())
    return;
  if (!body || !body->graph || count < 1 || count > static_cast<int64_t>(states.size()))
    return void(node.fail("needs a body, and at least as many inputs as the " + std::to_string(count) +
                          " of num_scan_inputs, which is at least 1"));
  const size_t outputs = node.outputs.size() - std::min(node.outputs.size(), states.size() - count);
  std::optional<Shape> axes = each(node, "scan_input_axes", count),
                       directions = each(node, "scan_input_directions", count),
                       outputAxes = each(node, "scan_output_axes", outputs),
                       outputDirections = each(node, "scan_output_directions", outputs);
  if (node.failed())
    return;
  LoopOptions options;
  options.batchFirst = llvm::any_of(states, [](const Tensor &x) { return x.hasBatch(); });
  options.reverse = llvm::all_of(*directions, isBackwards) && llvm::all_of(*outputDirections, isBackwards);
  const int64_t time = options.batchFirst ? 1 : 0;

  inputs.assign(states.end() - count, states.end());
  states.resize(states.size() - count);
  for (auto [input, axis, direction] : llvm::zip_equal(inputs, *axes, *directions)) {
    const int64_t dim = dimension(input, axis);
    if (dim < 0)
      return;
    if (input.rank() <= time)
      return void(node.fail("input of shape " + toString(input.shape()) +
                            " has no batch, but another has an open one: bind it with --dim NAME=N"));
    input = moveDim(input, dim, time);
    if (isBackwards(direction) && !options.reverse)
      input = reverse(input, {time});
  }
  LoopValues values = node.importer().runLoop(*body->graph, states, inputs, options);
  if (node.failed() || values.outputs.size() < outputs)
    return;
  for (size_t i = 0; i < values.carried.size(); ++i)
    node.output(values.carried[i], i);
  for (size_t i = 0; i < outputs; ++i) {
    Tensor output = values.outputs[i];
    const int64_t dim = dimension(output, (*outputAxes)[i]);
    if (isBackwards((*outputDirections)[i]) && !options.reverse)
      output = reverse(output, {time});
    if (dim < 0)
      return;
    node.output(moveDim(output, time, dim), values.carried.size() + i);
  }
}

} // namespace

void addScan(OpTable &table) {
  table["Scan"] = {lowerScan,
                   {"body", "num_scan_inputs", "scan_input_axes", "scan_input_directions", "scan_output_axes",
                    "scan_output_directions"}};
}

} // namespace gpuc::onnx
