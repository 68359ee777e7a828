//===- Recurrent.cpp - RNN, LSTM and GRU ------------------------------------===//
//
// A direction of a layer is one scan. Its body multiplies x_t by weight_ih as the formula says; that
// gpuc-hoist-from-scans makes one product of all steps of it, before the loop, keeps the batch where it is
// here.
//
//===----------------------------------------------------------------------===//

#include "frontend/builder/Recurrent.h"

#include "frontend/builder/Graph.h"
#include "frontend/builder/Scan.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace gpuc::nn {

using detail::Graph;

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

namespace {

int64_t gatesOf(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

/// The state that follows on `state`; a and b as in Recurrent.h, (batch, gates · hidden).
std::vector<Tensor> nextState(Cell cell, const Tensor &a, const Tensor &b, const std::vector<Tensor> &state,
                              int64_t hidden) {
  auto gate = [&](const Tensor &gates, int64_t i) { return slice(gates, 1, i * hidden, (i + 1) * hidden); };
  switch (cell) {
  case Cell::rnnTanh:
    return {tanh(a + b)};
  case Cell::rnnRelu:
    return {relu(a + b)};
  case Cell::lstm: {
    Tensor gates = a + b;
    Tensor c = sigmoid(gate(gates, 1)) * state[1] + sigmoid(gate(gates, 0)) * tanh(gate(gates, 2));
    return {sigmoid(gate(gates, 3)) * tanh(c), c};
  }
  case Cell::gru: {
    Tensor r = sigmoid(gate(a, 0) + gate(b, 0)), z = sigmoid(gate(a, 1) + gate(b, 1));
    Tensor n = tanh(gate(a, 2) + r * gate(b, 2));
    return {(1 - z) * n + z * state[0]};
  }
  }
  return {};
}

Tensor zeros(const Tensor &user, const Shape &shape) { return broadcastTo(constant(user, {}, {0}), shape); }

/// `value` (batch, hidden) in the rows where `counts` (i1, batch) holds, else `other`.
Tensor where(const Tensor &counts, const Tensor &value, const Tensor &other) {
  Graph &graph = *value.graph();
  if (!graph.usable("where", {&counts, &value, &other}))
    return {};
  Tensor condition = graph.emitTensor<ir::BroadcastOp>(graph.tensorType(value.shape(), DataType::i1),
                                                       Graph::unwrap(counts), llvm::ArrayRef<int64_t>{0});
  return graph.emitTensor<ir::SelectOp>(Graph::unwrap(condition), Graph::unwrap(value), Graph::unwrap(other));
}

/// Which steps lie before a row's end: i1, of the first two dimensions of x.
Tensor stepsThatCount(const Tensor &x, const Tensor &lengths, int64_t timeDim) {
  Graph &graph = *x.graph();
  auto type = graph.tensorType({x.shape()[0], x.shape()[1]}, lengths.dtype());
  Tensor step = graph.emitTensor<ir::IotaOp>(type, graph.builder.getI64IntegerAttr(timeDim));
  Tensor end =
      graph.emitTensor<ir::BroadcastOp>(type, Graph::unwrap(lengths), llvm::ArrayRef<int64_t>{1 - timeDim});
  return graph.emitTensor<ir::CompareOp>(ir::Comparison::lt, Graph::unwrap(step), Graph::unwrap(end));
}

} // namespace

//===----------------------------------------------------------------------===//
// What it is given
//===----------------------------------------------------------------------===//

std::string Recurrent::describe() const {
  static constexpr const char *kNames[] = {"RNN", "RNN", "LSTM", "GRU"};
  std::string text = llvm::formatv("{0}({1}, {2}", kNames[static_cast<int>(cell_)], in_, hidden_);
  if (options_.layers != 1)
    text += ", layers=" + std::to_string(options_.layers);
  if (cell_ == Cell::rnnRelu)
    text += ", relu";
  if (options_.dropout != 0)
    text += ", dropout=" + detail::numberText(options_.dropout);
  if (options_.bidirectional)
    text += ", bidirectional";
  return text + (options_.bias ? "" : ", bias=false") + (options_.batchFirst ? ")" : ", batch_first=false)");
}

bool Recurrent::checkOptions(Graph &graph) const {
  if (in_ < 1 || hidden_ < 1 || options_.layers < 1)
    graph.fail(describe() + " needs at least one input, one hidden unit and one layer");
  else if (options_.dropout != 0 && options_.layers == 1)
    graph.fail(describe() +
               " has dropout between layers, but one layer: give it two, or put a Dropout behind it");
  return !graph.failed();
}

bool Recurrent::check(const Tensor &x, const RecurrentInputs &given) const {
  Graph &graph = *x.graph();
  if (!checkOptions(graph))
    return false;
  const Shape shape = x.shape();
  if (x.dtype() != graph.floats)
    graph.fail(llvm::formatv("{0} takes {1}, got {2}; convert with to()", describe(), nameOf(graph.floats),
                             nameOf(x.dtype())));
  else if (shape.size() != 3 || shape[2] != in_)
    graph.fail(llvm::formatv("{0} takes [{1}, {2}], got {3}", describe(),
                             options_.batchFirst ? "batch, time" : "time, batch", in_, toString(shape)));
  else if (shape[timeDim()] == kBatch)
    graph.fail(llvm::formatv(
        "{0} takes [time, batch, {1}] of known extents, got {2}; an unknown batch leads, so take "
        "batch_first",
        describe(), in_, toString(shape)));
  const Tensor &lengths = given.lengths;
  if (!graph.failed() && lengths.graph() && graph.usable("lengths", {&lengths}) &&
      (lengths.shape() != Shape{shape[batchDim()]} ||
       (lengths.dtype() != DataType::i32 && lengths.dtype() != DataType::i64)))
    graph.fail(llvm::formatv("{0} takes lengths {1} of i32 or i64, got {2} of {3}", describe(),
                             toString({shape[batchDim()]}), toString(lengths.shape()),
                             nameOf(lengths.dtype())));
  if (!graph.failed() && cell_ != Cell::lstm && given.c0.graph())
    graph.fail(describe() + " has no c; only an LSTM takes c0");
  if (!graph.failed() && cell_ == Cell::lstm && !given.h0.graph() != !given.c0.graph())
    graph.fail(llvm::formatv("{0} takes h0 and c0 together, got {1} alone", describe(),
                             given.h0.graph() ? "h0" : "c0"));
  return checkState(x, given.h0, "h0") && checkState(x, given.c0, "c0");
}

bool Recurrent::checkState(const Tensor &x, const Tensor &state, const char *name) const {
  Graph &graph = *x.graph();
  if (graph.failed() || !state.graph())
    return !graph.failed();
  Shape expected = {options_.layers * directions(), hidden_};
  expected.insert(expected.begin() + batchDim(), x.shape()[batchDim()]);
  if (graph.usable(name, {&state}) && (state.shape() != expected || state.dtype() != graph.floats))
    graph.fail(llvm::formatv("{0} takes {1} {2} of {3}, got {4} of {5}", describe(), name, toString(expected),
                             nameOf(graph.floats), toString(state.shape()), nameOf(state.dtype())));
  return !graph.failed();
}

Recurrent::State Recurrent::initialState(const Tensor &x, const RecurrentInputs &given, int64_t index) const {
  State state;
  for (const Tensor *whole : {&given.h0, &given.c0}) {
    if (whole == &given.c0 && cell_ != Cell::lstm)
      continue;
    state.push_back(whole->graph() ? select(*whole, timeDim(), index)
                                   : zeros(x, {x.shape()[batchDim()], hidden_}));
  }
  return state;
}

/// weight_ih, weight_hh and, if there are any, what biases add to a and to b. Where a + b alone counts that
/// is one sum: its gradient then is one too.
std::vector<Tensor> Recurrent::parametersOf(const Tensor &x, int64_t layer, bool reverse) {
  const std::string suffix = "_l" + std::to_string(layer) + (reverse ? "_reverse" : "");
  const int64_t rows = gatesOf(cell_) * hidden_, in = layer == 0 ? in_ : directions() * hidden_;
  const Initializer initializer = Initializer::uniform(1 / std::sqrt(static_cast<double>(hidden_)));
  std::vector<Tensor> parameters = {parameter(x, "weight_ih" + suffix, {rows, in}, initializer),
                                    parameter(x, "weight_hh" + suffix, {rows, hidden_}, initializer)};
  if (!options_.bias)
    return parameters;
  Tensor inputBias = parameter(x, "bias_ih" + suffix, {rows}, initializer);
  Tensor stateBias = parameter(x, "bias_hh" + suffix, {rows}, initializer);
  if (cell_ == Cell::gru)
    parameters.insert(parameters.end(), {inputBias, stateBias});
  else
    parameters.push_back(inputBias + stateBias);
  return parameters;
}

//===----------------------------------------------------------------------===//
// Layers over time
//===----------------------------------------------------------------------===//

Recurrence Recurrent::operator()(const Tensor &x, const RecurrentInputs &given) {
  Recurrence result;
  call(x, [&]() -> Tensor {
    if (check(x, given))
      result = run(x, given);
    return result.output;
  });
  return result.output.valid() ? result : Recurrence();
}

Recurrence Recurrent::run(const Tensor &x, const RecurrentInputs &given) {
  Tensor counts = given.lengths.graph() ? stepsThatCount(x, given.lengths, timeDim()) : Tensor();
  Tensor h = x;
  std::vector<State> finals; // of layer 0, of it in reverse, of layer 1, …
  for (int64_t layer = 0; layer < options_.layers; ++layer) {
    if (layer > 0 && options_.dropout != 0)
      h = dropout(h, options_.dropout);
    if (h.valid())
      h = runLayer(h, given, counts, layer, finals);
  }
  if (!h.valid())
    return {};

  auto stacked = [&](size_t part) {
    Shape one = {1, hidden_};
    one.insert(one.begin() + batchDim(), x.shape()[batchDim()]);
    std::vector<Tensor> parts;
    for (const State &state : finals)
      parts.push_back(reshape(state[part], one));
    return concat(parts, timeDim());
  };
  return {h, stacked(0), cell_ == Cell::lstm ? stacked(1) : Tensor()};
}

/// What layer `layer` gives for x; its final states, one a direction, come behind `finals`. `counts` says
/// which steps do; not valid if all do.
Tensor Recurrent::runLayer(const Tensor &x, const RecurrentInputs &given, const Tensor &counts, int64_t layer,
                           std::vector<State> &finals) {
  std::vector<Tensor> outputs, inputs = {x};
  if (counts.valid())
    inputs.push_back(counts);
  auto step = [&](const std::vector<Tensor> &slices, const State &state,
                  const std::vector<Tensor> &parameters) -> ScanValues {
    Tensor a = matmul(slices[0], parameters[0], /*transposeRhs=*/true);
    Tensor b = matmul(state[0], parameters[1], /*transposeRhs=*/true);
    if (parameters.size() > 2)
      a = a + parameters[2];
    if (parameters.size() > 3)
      b = b + parameters[3];
    State next = nextState(cell_, a, b, state, hidden_);
    if (slices.size() == 1 || !next[0].valid())
      return {next, {next[0]}};
    Tensor output = where(slices[1], next[0], zeros(next[0], next[0].shape()));
    for (size_t i = 0; i < next.size(); ++i)
      next[i] = where(slices[1], next[i], state[i]);
    return {next, {output}};
  };
  for (int64_t direction = 0; direction < directions(); ++direction) {
    const bool reverse = direction == 1;
    ScanValues loop =
        scan(inputs, initialState(x, given, layer * directions() + direction),
             parametersOf(x, layer, reverse), step, {.batchFirst = options_.batchFirst, .reverse = reverse});
    if (loop.outputs.empty())
      return {};
    outputs.push_back(loop.outputs[0]);
    finals.push_back(loop.carried);
  }
  return outputs.size() == 1 ? outputs[0] : concat(outputs, 2);
}

} // namespace gpuc::nn
