//===- RecurrentOps.cpp - RNN, LSTM and GRU ---------------------------------===//
//
// By the formulas of ONNX's op documentation, each direction one gpuc.scan: what does not depend on the step
// before, the product of the input and its weights, is computed for all steps at once outside of it. A step
// beyond a sequence's length leaves the states as they are and gives zeros.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Loop.h"
#include "frontend/onnx/ops/Activations.h"
#include "frontend/onnx/ops/OpTable.h"

#include "llvm/ADT/STLExtras.h"

#include <functional>

namespace gpuc::onnx {
namespace {

/// What the three layers have in common, read and checked once.
struct Layer {
  int64_t gates = 1, hidden = 0, directions = 1, steps = 0, batch = 0;
  bool batchFirst = false, reverse = false; ///< `reverse`: of the only direction.
  double clip = 0;                          ///< Of what activations get; 0 if they get all.
  std::vector<Activation> activations;      ///< As many for each direction.
  Tensor x;                                 ///< [steps, batch, inputs], or batch first.
  Tensor valid;                             ///< i1 [steps, batch, 1], or batch first; empty if all steps are.

  int64_t timeDim() const { return batchFirst ? 1 : 0; }
  Tensor activate(int64_t direction, size_t which, const Tensor &value) const {
    const Activation &f = activations[direction * (activations.size() / directions) + which];
    return f(clip > 0 ? clamp(value, -clip, clip) : value);
  }
  /// Of a tensor [batch, gates · hidden] or [gates · hidden, …], the part of one gate.
  Tensor gate(const Tensor &x, int64_t dim, int64_t first, int64_t count = 1) const {
    return slice(x, dim, first * hidden, (first + count) * hidden);
  }
};

/// Weights of one direction; those that a layer has not are empty.
struct Weights {
  Tensor input, recurrent, inputBias, recurrentBias, peepholes;
};

/// What one direction computes: x · Wᵀ + bias of all steps at once, and of each step's part of that, the
/// states and the captures the next states, h first.
struct Direction {
  Tensor bias; ///< May be empty.
  std::vector<Tensor> captures;
  std::function<std::vector<Tensor>(const Tensor &x, const std::vector<Tensor> &states,
                                    const std::vector<Tensor> &captures)>
      step;
};
using Describe = Direction(NodeScope &node, const Layer &layer, const Weights &weights, int64_t direction);

Tensor timesTransposed(const Tensor &lhs, const Tensor &rhs) {
  return matmul(lhs, rhs, /*transposeLhs=*/false, /*transposeRhs=*/true);
}

//===----------------------------------------------------------------------===//
// Attributes and operands
//===----------------------------------------------------------------------===//

/// Input `index` has `shape`, or says that it does not.
bool expectShape(NodeScope &node, size_t index, const Shape &shape, const char *role) {
  if (!node.has(index) || node.shapeOf(index) == shape)
    return true;
  return node.fail("input " + std::to_string(index) + " (" + role + ") has shape " +
                   toString(node.shapeOf(index)) + ", expected " + toString(shape));
}

/// Whether the activations have taken all of their numbers; says so if one is left over.
bool allTaken(NodeScope &node, const char *name, const std::vector<double> &numbers, size_t taken) {
  if (taken == numbers.size())
    return true;
  return node.fail(std::string("attribute '") + name + "' has " + std::to_string(numbers.size()) +
                   " numbers, but the activations take " + std::to_string(taken));
}

/// The activations of all directions; alphas and betas are taken by those that have one, in order.
bool readActivations(NodeScope &node, Layer &layer, const std::vector<std::string> &defaults) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < layer.directions; ++i)
    all.insert(all.end(), defaults.begin(), defaults.end());
  all = node.texts("activations", all);
  std::vector<double> alphas = node.numbers("activation_alpha"), betas = node.numbers("activation_beta");
  if (node.failed())
    return false;
  if (all.size() != defaults.size() * layer.directions)
    return node.fail("attribute 'activations' has " + std::to_string(all.size()) + " names, expected " +
                     std::to_string(defaults.size()) + " for each direction");
  size_t alpha = 0, beta = 0;
  for (const std::string &name : all) {
    std::optional<Activation> activation = activationNamed(name);
    if (!activation)
      return node.fail(
          "attribute 'activations': '" + name +
          "' is none of Relu Tanh Sigmoid Affine LeakyRelu ThresholdedRelu ScaledTanh HardSigmoid Elu "
          "Softsign Softplus");
    if (activation->parameters >= 1 && alpha < alphas.size())
      activation->alpha = alphas[alpha++];
    if (activation->parameters >= 2 && beta < betas.size())
      activation->beta = betas[beta++];
    layer.activations.push_back(*activation);
  }
  return allTaken(node, "activation_alpha", alphas, alpha) && allTaken(node, "activation_beta", betas, beta);
}

/// Whether `layout` and `clip` are what ONNX has for them; says so if not.
bool checkNumbers(NodeScope &node) {
  const int64_t layout = node.integer("layout", 0);
  const double clip = node.number("clip", 1);
  if (layout != 0 && layout != 1)
    node.fail("attribute 'layout' = " + std::to_string(layout) + ": 0 (steps first) or 1 (batch first)");
  if (!(clip > 0))
    node.fail("attribute 'clip' is not above 0; leave it out for no bound");
  return !node.failed();
}

/// i1 [steps, batch, 1], or batch first: whether a step lies within its sequence.
Tensor validSteps(NodeScope &node, const Layer &layer) {
  Tensor lengths = cast(node.input(4), DataType::i32);
  Shape ofTime = {layer.steps, 1}, ofBatch = {layer.batch, 1};
  ofTime.insert(ofTime.begin() + (layer.batchFirst ? 0 : 1), 1);
  ofBatch.insert(ofBatch.begin() + layer.timeDim(), 1);
  return compare("lt", iota(node.emitter, ofTime, DataType::i32, layer.timeDim()), reshape(lengths, ofBatch));
}

std::optional<Layer> readLayer(NodeScope &node, int64_t gates, const std::vector<std::string> &activations) {
  Layer layer;
  layer.gates = gates;
  layer.x = node.input(0);
  layer.batchFirst = node.integer("layout", 0) != 0;
  layer.clip = node.number("clip", 0);
  std::string direction = node.text("direction", "forward");
  layer.reverse = direction == "reverse";
  layer.directions = direction == "bidirectional" ? 2 : 1;
  Shape r = node.shapeOf(2);
  if (!checkNumbers(node))
    return std::nullopt;
  if (!node.has(1) || !node.has(2))
    return node.fail("inputs 0 to 2 (X, W, R) are needed");
  if (direction != "forward" && !layer.reverse && layer.directions == 1)
    return node.fail("attribute 'direction' = '" + direction + "': forward, reverse or bidirectional");
  if (layer.x.rank() != 3 || r.size() != 3 || r[2] < 1)
    return node.fail("inputs 0 (X) and 2 (R) have shapes " + toString(layer.x.shape()) + " and " +
                     toString(r) + ", expected three dimensions and hidden units");
  const int64_t d = layer.directions, h = layer.hidden = r[2], all = gates * h;
  layer.steps = layer.x.extent(layer.timeDim());
  layer.batch = layer.x.extent(1 - layer.timeDim());
  if (h != node.integer("hidden_size", h))
    return node.fail("attribute 'hidden_size' = " + std::to_string(node.integer("hidden_size", h)) +
                     ", but input 2 (R) has shape " + toString(r));
  Shape states = layer.batchFirst ? Shape{layer.batch, d, h} : Shape{d, layer.batch, h};
  if (!expectShape(node, 1, {d, all, layer.x.extent(2)}, "W") || !expectShape(node, 2, {d, all, h}, "R") ||
      !expectShape(node, 3, {d, 2 * all}, "B") || !expectShape(node, 4, {layer.batch}, "sequence_lens") ||
      !expectShape(node, 5, states, "initial_h") || !expectShape(node, 6, states, "initial_c") ||
      !expectShape(node, 7, {d, 3 * h}, "P") || !readActivations(node, layer, activations))
    return std::nullopt;
  if (node.has(4))
    layer.valid = validSteps(node, layer);
  return node.failed() ? std::nullopt : std::optional(layer);
}

/// Row `direction` of what has directions as dimension `dim`, without that dimension.
Tensor pick(const Tensor &x, int64_t dim, int64_t direction) {
  Shape rest = x.shape();
  if (dim >= static_cast<int64_t>(rest.size()))
    return {};
  rest.erase(rest.begin() + dim);
  return reshape(slice(x, dim, direction, direction + 1), rest);
}

Weights weightsOf(NodeScope &node, const Layer &layer, int64_t direction) {
  Weights weights;
  weights.input = pick(node.input(1), 0, direction);
  weights.recurrent = pick(node.input(2), 0, direction);
  if (node.has(3)) {
    Tensor biases = pick(node.input(3), 0, direction);
    weights.inputBias = layer.gate(biases, 0, 0, layer.gates);
    weights.recurrentBias = layer.gate(biases, 0, layer.gates, layer.gates);
  }
  if (node.has(7))
    weights.peepholes = pick(node.input(7), 0, direction);
  return weights;
}

/// The state that input `index` gives at the beginning, or zeros: [batch, hidden].
Tensor initialState(NodeScope &node, const Layer &layer, size_t index, int64_t direction) {
  if (node.has(index))
    return pick(node.input(index), layer.timeDim(), direction);
  return node.emitter.constant({layer.batch, layer.hidden}, layer.x.type(), 0);
}

//===----------------------------------------------------------------------===//
// Running a layer
//===----------------------------------------------------------------------===//

/// One direction over all steps, which hand on so many states.
LoopValues runDirection(NodeScope &node, const Layer &layer, Describe describe, size_t states,
                        int64_t number) {
  const Weights weights = weightsOf(node, layer, number);
  const Direction direction = describe(node, layer, weights, number);
  Tensor product = timesTransposed(layer.x, weights.input); // [steps, batch, gates · hidden], or batch first
  std::vector<Tensor> inputs = {direction.bias ? product + direction.bias : product}, first;
  for (size_t i = 0; i < states; ++i)
    first.push_back(initialState(node, layer, 5 + i, number));
  if (layer.valid)
    inputs.push_back(layer.valid);
  LoopOptions options = {layer.batchFirst, layer.reverse || number == 1};
  return loop(node.emitter, inputs, first, direction.captures, options,
              [&](const std::vector<Tensor> &slices, const std::vector<Tensor> &carried,
                  const std::vector<Tensor> &captured) -> LoopValues {
                std::vector<Tensor> next = direction.step(slices[0], carried, captured);
                Tensor output = next.front();
                if (layer.valid) {
                  output = select(slices[1], output, like(output, 0));
                  for (auto [value, before] : llvm::zip_equal(next, carried))
                    value = select(slices[1], value, before);
                }
                return {next, {output}};
              });
}

/// A layer's outputs: all steps of h, the last h and, of two states, the last c.
void lowerLayer(NodeScope &node, Describe describe, int64_t gates, size_t states,
                const std::vector<std::string> &activations) {
  std::optional<Layer> layer = readLayer(node, gates, activations);
  if (!layer)
    return;
  const int64_t time = layer->timeDim(), beside = layer->batchFirst ? 2 : 1;
  std::vector<Tensor> steps;
  std::vector<std::vector<Tensor>> last(states);
  for (int64_t direction = 0; direction < layer->directions; ++direction) {
    LoopValues values = runDirection(node, *layer, describe, states, direction);
    if (node.failed() || values.outputs.empty())
      return;
    steps.push_back(unsqueeze(values.outputs.front(), {beside}));
    for (size_t i = 0; i < states; ++i)
      last[i].push_back(unsqueeze(values.carried[i], {time}));
  }
  auto join = [&](const std::vector<Tensor> &parts, int64_t dim) {
    return parts.size() == 1 ? parts.front() : concat(parts, dim);
  };
  node.output(join(steps, beside), 0);
  for (size_t i = 0; i < states; ++i)
    node.output(join(last[i], time), i + 1);
}

Tensor bothBiases(const Weights &weights) {
  return weights.inputBias ? weights.inputBias + weights.recurrentBias : Tensor();
}

//===----------------------------------------------------------------------===//
// The three layers
//===----------------------------------------------------------------------===//

/// h' = f(X Wᵀ + h Rᵀ + Wb + Rb).
Direction describeRnn(NodeScope &, const Layer &layer, const Weights &weights, int64_t d) {
  auto step = [&layer, d](const Tensor &x, const auto &states, const auto &captures) {
    return std::vector<Tensor>{layer.activate(d, 0, x + timesTransposed(states[0], captures[0]))};
  };
  return {bothBiases(weights), {weights.recurrent}, step};
}

/// Gates i, o, f and the candidate c, in this order; peepholes are i, o, f.
Direction describeLstm(NodeScope &node, const Layer &layer, const Weights &weights, int64_t d) {
  const bool coupled = node.integer("input_forget", 0);
  std::vector<Tensor> captures = {weights.recurrent};
  if (weights.peepholes)
    captures.push_back(weights.peepholes);
  auto step = [&layer, d, coupled](const Tensor &x, const auto &states, const auto &captured) {
    Tensor all = x + timesTransposed(states[0], captured[0]);
    auto gate = [&](int64_t index, const Tensor &cell, int64_t peephole) {
      Tensor value = layer.gate(all, 1, index);
      return captured.size() > 1 ? value + layer.gate(captured[1], 0, peephole) * cell : value;
    };
    const Tensor &before = states[1];
    Tensor input = layer.activate(d, 0, gate(0, before, 0));
    Tensor forget = coupled ? 1.0 - input : layer.activate(d, 0, gate(2, before, 2));
    Tensor cell = forget * before + input * layer.activate(d, 1, layer.gate(all, 1, 3));
    Tensor output = layer.activate(d, 0, gate(1, cell, 1));
    return std::vector<Tensor>{output * layer.activate(d, 2, cell), cell};
  };
  return {bothBiases(weights), captures, step};
}

/// Gates z, r and the candidate h, in this order. `linear_before_reset`: r is applied behind the candidate's
/// product, and so to its bias.
Direction describeGru(NodeScope &node, const Layer &layer, const Weights &weights, int64_t d) {
  const bool behind = node.integer("linear_before_reset", 0);
  std::vector<Tensor> captures = {layer.gate(weights.recurrent, 0, 0, 2),
                                  layer.gate(weights.recurrent, 0, 2)};
  Tensor bias = bothBiases(weights);
  if (behind && bias) {
    Tensor gates = layer.gate(weights.recurrentBias, 0, 0, 2);
    captures.push_back(layer.gate(weights.recurrentBias, 0, 2));
    bias = weights.inputBias + pad(gates, {0}, {layer.hidden}, 0);
  }
  auto step = [&layer, d, behind](const Tensor &x, const auto &states, const auto &captured) {
    const Tensor &h = states[0];
    Tensor gates = layer.activate(d, 0, layer.gate(x, 1, 0, 2) + timesTransposed(h, captured[0]));
    Tensor update = layer.gate(gates, 1, 0), reset = layer.gate(gates, 1, 1);
    Tensor own = timesTransposed(behind ? h : reset * h, captured[1]);
    if (captured.size() > 2)
      own = own + captured[2];
    Tensor candidate = layer.activate(d, 1, layer.gate(x, 1, 2) + (behind ? reset * own : own));
    return std::vector<Tensor>{(1.0 - update) * candidate + update * h};
  };
  return {bias, captures, step};
}

std::vector<std::string> attributesWith(std::vector<std::string> own) {
  own.insert(own.end(), {"activation_alpha", "activation_beta", "activations", "clip", "direction",
                         "hidden_size", "layout"});
  return own;
}

} // namespace

void addRecurrent(OpTable &table) {
  table["RNN"] = {[](NodeScope &n) { lowerLayer(n, describeRnn, 1, 1, {"Tanh"}); }, attributesWith({})};
  table["LSTM"] = {[](NodeScope &n) { lowerLayer(n, describeLstm, 4, 2, {"Sigmoid", "Tanh", "Tanh"}); },
                   attributesWith({"input_forget"})};
  table["GRU"] = {[](NodeScope &n) { lowerLayer(n, describeGru, 3, 1, {"Sigmoid", "Tanh"}); },
                  attributesWith({"linear_before_reset"})};
}

} // namespace gpuc::onnx
