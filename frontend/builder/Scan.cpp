//===- Scan.cpp - Loops over time in a model that is being built ------------===//

#include "frontend/builder/Scan.h"

#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

namespace {

SmallVector<const Tensor *> pointersTo(std::initializer_list<const std::vector<Tensor> *> groups) {
  SmallVector<const Tensor *> pointers;
  for (const std::vector<Tensor> *group : groups)
    for (const Tensor &tensor : *group)
      pointers.push_back(&tensor);
  return pointers;
}

SmallVector<Value> unwrap(const std::vector<Tensor> &tensors) {
  return llvm::map_to_vector(tensors, [](const Tensor &tensor) { return Graph::unwrap(tensor); });
}

std::vector<Tensor> wrap(Graph &graph, ValueRange values) {
  std::vector<Tensor> tensors;
  for (Value value : values)
    tensors.push_back(graph.wrap(value));
  return tensors;
}

/// The number of steps; an error if the inputs have none in common.
int64_t stepsOf(Graph &graph, const std::vector<Tensor> &inputs, int64_t dim) {
  int64_t steps = 0;
  for (const Tensor &input : inputs) {
    Shape shape = input.shape();
    int64_t own = dim < input.rank() ? shape[dim] : 0;
    if (own < 1 || (steps != 0 && own != steps)) {
      graph.fail(llvm::formatv("scan over {0}: dimension {1} must be time, with one number of steps for all "
                               "inputs",
                               toString(shape), dim));
      return 0;
    }
    steps = own;
  }
  if (steps == 0)
    graph.fail("scan without inputs, which say how many steps there are");
  return steps;
}

/// Whether a step gives values of the types that it got.
bool checkStep(Graph &graph, const std::vector<Tensor> &inits, const ScanValues &step) {
  if (graph.failed() || !graph.usable("scan", pointersTo({&step.carried, &step.outputs})))
    return false;
  bool same = step.carried.size() == inits.size();
  for (size_t i = 0; same && i < inits.size(); ++i)
    same = Graph::unwrap(step.carried[i]).getType() == Graph::unwrap(inits[i]).getType();
  if (!same)
    graph.fail("scan: a step must carry on tensors of the number and shapes that it was given");
  return same;
}

} // namespace

ScanValues scan(const std::vector<Tensor> &inputs, const std::vector<Tensor> &inits,
                const std::vector<Tensor> &captures, const ScanBody &body, ScanOptions options) {
  if (inputs.empty() || !inputs.front().valid())
    return {};
  Graph &graph = *inputs.front().graph();
  if (!graph.usable("scan", pointersTo({&inputs, &inits, &captures})))
    return {};
  int64_t steps = stepsOf(graph, inputs, options.batchFirst ? 1 : 0);
  if (steps == 0)
    return {};

  bool complete = true;
  auto build = [&](OpBuilder &, Location, ValueRange slices, ValueRange carried, ValueRange captured) {
    Graph::LoopScope loop(graph, steps);
    ScanValues step = body(wrap(graph, slices), wrap(graph, carried), wrap(graph, captured));
    complete = checkStep(graph, inits, step);
    if (!complete)
      return SmallVector<Value>(carried);
    SmallVector<Value> yielded = unwrap(step.carried);
    llvm::append_range(yielded, unwrap(step.outputs));
    return yielded;
  };
  auto op = ir::ScanOp::create(graph.builder, graph.location(), unwrap(inputs), unwrap(inits),
                               unwrap(captures), steps, options.batchFirst, options.reverse, build);
  if (!complete)
    return {};
  return {wrap(graph, op.getFinals()), wrap(graph, op.getOutputs())};
}

} // namespace gpuc::nn
