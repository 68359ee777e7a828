//===- RecurrentOps.cpp - RNN, LSTM and GRU ------------------------------------===//
//
// PyTorch's layers, each direction of each one gpuc.scan: what does not depend on the step before, the
// product of the input and its weights, is computed for all steps at once outside of it. Of packed sequences
// python/gpuc/formulas/packed.py makes padded ones with their lengths, gpuc::recurrent.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Loop.h"
#include "frontend/torch/OpTable.h"

namespace gpuc::torch {
namespace {

using Tensors = std::vector<Tensor>;

Tensor timesTransposed(const Tensor &lhs, const Tensor &rhs) {
  return matmul(lhs, rhs, /*transposeLhs=*/false, /*transposeRhs=*/true);
}

/// A cell: how many gates its weights hold, one behind the other, and its next states, h first, of the
/// input's part and the states. Captures are the recurrent weight and, where there are, its bias and what
/// projects h.
struct Cell {
  int64_t gates;
  Tensors (*step)(const Tensor &x, const Tensors &states, const Tensors &captures);
};

Tensor recurrentPart(const Tensor &h, const Tensors &captures) {
  Tensor part = timesTransposed(h, captures[0]);
  return captures.size() > 1 && captures[1].rank() == 1 ? part + captures[1] : part;
}

/// Of a state that is as wide as a gate.
Tensor gate(const Tensor &all, const Tensor &state, int64_t index) {
  const int64_t hidden = state.extent(1);
  return slice(all, 1, index * hidden, (index + 1) * hidden);
}

template <const char *activation>
Tensors stepRnn(const Tensor &x, const Tensors &states, const Tensors &captures) {
  return {unary(activation, x + recurrentPart(states[0], captures))};
}

/// Gates i, f, g, o.
Tensors stepLstm(const Tensor &x, const Tensors &states, const Tensors &captures) {
  const Tensor &c = states[1];
  Tensor all = x + recurrentPart(states[0], captures);
  Tensor input = unary("sigmoid", gate(all, c, 0)), forget = unary("sigmoid", gate(all, c, 1));
  Tensor cell = forget * c + input * unary("tanh", gate(all, c, 2));
  Tensor h = unary("sigmoid", gate(all, c, 3)) * unary("tanh", cell);
  const bool isProjected = captures.size() > 1 && captures.back().rank() == 2;
  return {isProjected ? timesTransposed(h, captures.back()) : h, cell};
}

/// Gates r, z, n; the reset is applied behind the candidate's product, and so to its bias.
Tensors stepGru(const Tensor &x, const Tensors &states, const Tensors &captures) {
  const Tensor &h = states[0];
  Tensor own = recurrentPart(h, captures);
  Tensor reset = unary("sigmoid", gate(x, h, 0) + gate(own, h, 0));
  Tensor update = unary("sigmoid", gate(x, h, 1) + gate(own, h, 1));
  Tensor candidate = unary("tanh", gate(x, h, 2) + reset * gate(own, h, 2));
  return {(1.0 - update) * candidate + update * h};
}

/// The numbers that all three layers have.
struct Layers {
  int64_t count = 1;
  bool hasBiases = true, isBidirectional = false, isBatchFirst = false;
  double dropout = 0;
  Tensor valid = {}; ///< i1 [steps, batch, 1], or batch first; empty if all steps are of their sequence.
};

/// Behind its sequence a row's states stay as they are, and its outputs are 0.
onnx::LoopValues withinSequence(const Tensor &valid, const Tensors &carried, Tensors next) {
  Tensor output = select(valid, next.front(), like(next.front(), 0));
  for (auto [value, before] : llvm::zip_equal(next, carried))
    value = select(valid, value, before);
  return {next, {output}};
}

/// One direction of one layer: all steps of h, and the last states.
onnx::LoopValues runDirection(const Cell &cell, const Layers &layers, const Tensor &x, const Tensors &first,
                              const Tensors &weights, bool reverse) {
  Tensor projected = timesTransposed(x, weights[0]);
  Tensors captures = {weights[1]};
  if (layers.hasBiases) {
    projected = projected + weights[2];
    captures.push_back(weights[3]);
  }
  if (weights.size() % 2 == 1)
    captures.push_back(weights.back());
  if (!projected)
    return {};
  Tensors inputs = {projected};
  if (layers.valid)
    inputs.push_back(layers.valid);
  return loop(
      *x.emitter(), inputs, first, captures, {layers.isBatchFirst, reverse},
      [&](const Tensors &slices, const Tensors &carried, const Tensors &captured) -> onnx::LoopValues {
        Tensors next = cell.step(slices[0], carried, captured);
        if (layers.valid)
          return withinSequence(slices[1], carried, next);
        return {next, {next.front()}};
      });
}

Tensor join(const Tensors &parts, int64_t dim) {
  return parts.size() == 1 ? parts.front() : concat(parts, dim);
}

/// i1 [steps, batch, 1], or batch first: whether a step lies within its sequence.
Tensor validSteps(OpScope &op, const Tensor &x, bool isBatchFirst) {
  Tensor lengths = op.tensor("lengths");
  if (!lengths)
    return {};
  const int64_t time = isBatchFirst ? 1 : 0;
  limitRange(lengths, x.extent(time) + 1);
  Shape ofTime = {1, 1, 1}, ofBatch = {1, 1, 1};
  ofTime[time] = x.extent(time);
  ofBatch[1 - time] = x.extent(1 - time);
  lengths = cast(lengths, DataType::i32);
  return compare("lt", iota(op.emitter, ofTime, DataType::i32, time), reshape(lengths, ofBatch));
}

/// `states`: h and, of LSTM, c, [layers · directions, batch, hidden].
void lowerLayers(OpScope &op, const Cell &cell, Tensors states) {
  Layers layers{op.integer("num_layers", 1), op.flag("has_biases", true), op.flag("bidirectional", false),
                op.flag("batch_first", false), op.flag("train", false) ? op.number("dropout", 0) : 0};
  Tensor x = op.tensor("input");
  const Tensors weights = op.tensors("params");
  const int64_t directions = layers.isBidirectional ? 2 : 1;
  if (!x || op.failed())
    return;
  if (x.rank() != 3)
    return void(op.fail("input of shape " + toString(x.shape()) + " has no batch: put one in"));
  if (op.has("lengths"))
    layers.valid = validSteps(op, x, layers.isBatchFirst);
  const int64_t each = static_cast<int64_t>(weights.size()) / (layers.count * directions);
  std::vector<Tensors> last(states.size());
  for (int64_t layer = 0; layer < layers.count; ++layer) {
    Tensors steps;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t index = layer * directions + d;
      Tensors first, own(weights.begin() + index * each, weights.begin() + (index + 1) * each);
      for (const Tensor &state : states)
        first.push_back(reshape(slice(state, 0, index, index + 1), {state.extent(1), state.extent(2)}));
      onnx::LoopValues values = runDirection(cell, layers, x, first, own, d == 1);
      if (op.failed() || values.outputs.empty())
        return;
      steps.push_back(values.outputs.front());
      for (size_t i = 0; i < states.size(); ++i)
        last[i].push_back(unsqueeze(values.carried[i], {0}));
    }
    x = join(steps, 2);
    if (layers.dropout != 0 && layer + 1 < layers.count)
      x = op.emitter.op(
          "dropout", {x},
          {op.emitter.attribute("p", layers.dropout), op.emitter.attribute("id", op.nextRandomId())});
  }
  op.output(x);
  for (size_t i = 0; i < states.size(); ++i)
    op.output(join(last[i], 0), i + 1);
}

constexpr char kTanh[] = "tanh", kRelu[] = "relu";

/// By the layer's own word for what it is.
void lowerPacked(OpScope &op) {
  const std::string mode = op.text("mode", "");
  if (mode == "LSTM")
    return lowerLayers(op, {4, stepLstm}, op.tensors("hx"));
  if (mode == "GRU")
    return lowerLayers(op, {3, stepGru}, op.tensors("hx"));
  lowerLayers(op, {1, mode == "RNN_RELU" ? stepRnn<kRelu> : stepRnn<kTanh>}, op.tensors("hx"));
}

} // namespace

void addRecurrent(OpTable &table) {
  const std::vector<std::string> arguments = {"input",   "hx",    "params",        "has_biases", "num_layers",
                                              "dropout", "train", "bidirectional", "batch_first"};
  table["lstm.input"] = {[](OpScope &op) { lowerLayers(op, {4, stepLstm}, op.tensors("hx")); }, arguments};
  table["gru.input"] = {[](OpScope &op) { lowerLayers(op, {3, stepGru}, {op.tensor("hx")}); }, arguments};
  table["rnn_tanh.input"] = {[](OpScope &op) { lowerLayers(op, {1, stepRnn<kTanh>}, {op.tensor("hx")}); },
                             arguments};
  std::vector<std::string> packed = arguments;
  packed.insert(packed.end(), {"lengths", "mode"});
  table["gpuc.recurrent.default"] = {lowerPacked, packed};
  table["rnn_relu.input"] = {[](OpScope &op) { lowerLayers(op, {1, stepRnn<kRelu>}, {op.tensor("hx")}); },
                             arguments};
}

} // namespace gpuc::torch
