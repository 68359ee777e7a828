//===- ActivationOps.cpp - Activations --------------------------------------===//
//
// By the formulas of ONNX's op documentation. Where one branch of a choice may overflow it is kept from the
// large values, so that its derivative is 0 and not NaN.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/Activations.h"
#include "frontend/onnx/ops/OpTable.h"

#include "llvm/ADT/StringRef.h"

namespace gpuc::onnx {

Tensor clamp(const Tensor &x, double low, double high) {
  return x ? x.emitter()->op("clamp", {x},
                             {x.emitter()->attribute("low", low), x.emitter()->attribute("high", high)})
           : Tensor();
}

namespace {

/// x where it is not positive, else 0.
Tensor negativePart(const Tensor &x) { return select(compare("gt", x, 0), like(x, 0), x); }

/// x > 0: x; else scale · (exp(x / alpha) - 1).
Tensor exponentialUnit(const Tensor &x, double scale, double alpha) {
  Tensor below = unary("expm1", alpha == 1 ? negativePart(x) : negativePart(x) / alpha) * scale;
  return select(compare("gt", x, 0), x, below);
}

Tensor softplus(const Tensor &x) {
  return unary("relu", x) + unary("log1p", unary("exp", unary("neg", unary("abs", x))));
}

/// PyTorch's alpha is a sixth, of which an attribute holds seven digits.
Tensor hardSigmoid(const Tensor &x, double alpha, double beta) {
  const bool sixth = static_cast<float>(alpha) == static_cast<float>(1.0 / 6);
  return clamp(x * (sixth ? 1.0 / 6 : alpha) + beta, 0, 1);
}

Tensor thresholdedRelu(const Tensor &x, double alpha) {
  return select(compare("gt", x, alpha), x, like(x, 0));
}

Tensor softsign(const Tensor &x) { return x / (unary("abs", x) + 1.0); }

Tensor leakyRelu(const Tensor &x, double alpha) {
  return x ? x.emitter()->op("leaky_relu", {x}, x.emitter()->attribute("slope", alpha)) : Tensor();
}

void lowerActivation(NodeScope &node) {
  Activation activation = *activationNamed(node.node.op);
  activation.alpha = node.number("alpha", activation.alpha);
  activation.beta = node.number("beta", activation.beta);
  node.output(activation(node.input(0)));
}

void lowerGelu(NodeScope &node) {
  std::string by = node.text("approximate", "none");
  if (by != "none" && by != "tanh")
    node.fail("attribute 'approximate' = '" + by + "': none or tanh");
  node.output(by == "tanh" ? node.emitter.op("gelu", {node.input(0)}, node.emitter.flag("approximate"))
                           : unary("gelu", node.input(0)));
}

void lowerPRelu(NodeScope &node) {
  Tensor x = node.input(0), slope = node.input(1);
  node.output(select(compare("lt", x, 0), x * slope, x));
}

void lowerShrink(NodeScope &node) {
  Tensor x = node.input(0);
  double bias = node.number("bias", 0), bound = node.number("lambd", 0.5);
  Tensor middle = select(compare("gt", x, bound), x - bias, like(x, 0));
  node.output(select(compare("lt", x, -bound), x + bias, middle));
}

/// Up to opset 12 the axis, 1 if it is left out, begins the dimensions that count as one.
template <typename Lower> void alongAxis(NodeScope &node, Lower lower) {
  Tensor x = node.input(0);
  const bool old = node.importer().opset() < 13;
  const int64_t axis = dimension(x, node.integer("axis", old ? 1 : -1));
  if (axis < 0)
    return;
  if (!old || axis == x.rank() - 1)
    return node.output(lower(x, axis));
  Shape shape = x.shape(), rows(shape.begin(), shape.begin() + axis);
  if (axis == 0 && x.hasBatch())
    return void(node.fail("goes along the batch, which is open: bind it with --dim NAME=N"));
  rows.push_back(countOf(shape, axis, shape.size()));
  node.output(reshape(lower(reshape(x, rows), axis), shape));
}

/// 1 at the largest element, at the first of several.
Tensor hardmax(const Tensor &x, int64_t axis) {
  if (!x)
    return {};
  Tensor largest = unsqueeze(along("argmax", x, axis), {axis});
  Tensor index = iota(*x.emitter(), x.shape(), DataType::i64, axis);
  return cast(compare("eq", index, largest), x.type());
}

} // namespace

std::optional<Activation> activationNamed(const std::string &name) {
  std::string key = llvm::StringRef(name).lower();
  static const std::map<std::string, Activation> kAll = {
      {"relu", {[](const Tensor &x, double, double) { return unary("relu", x); }}},
      {"tanh", {[](const Tensor &x, double, double) { return unary("tanh", x); }}},
      {"sigmoid", {[](const Tensor &x, double, double) { return unary("sigmoid", x); }}},
      {"softsign", {[](const Tensor &x, double, double) { return softsign(x); }}},
      {"softplus", {[](const Tensor &x, double, double) { return softplus(x); }}},
      {"affine", {[](const Tensor &x, double a, double b) { return x * a + b; }, 2, 1, 0}},
      {"scaledtanh", {[](const Tensor &x, double a, double b) { return unary("tanh", x * b) * a; }, 2, 1, 1}},
      {"hardsigmoid", {hardSigmoid, 2, 0.2, 0.5}},
      {"leakyrelu", {[](const Tensor &x, double a, double) { return leakyRelu(x, a); }, 1, 0.01}},
      {"thresholdedrelu", {[](const Tensor &x, double a, double) { return thresholdedRelu(x, a); }, 1, 1}},
      {"elu", {[](const Tensor &x, double a, double) { return exponentialUnit(x, a, 1); }, 1, 1}}};
  auto found = kAll.find(key);
  return found == kAll.end() ? std::nullopt : std::optional(found->second);
}

void addActivations(OpTable &table) {
  // Those that recurrent layers have too, with the same defaults.
  for (const char *op : {"Softplus", "Softsign"})
    table[op] = {lowerActivation, {}};
  for (const char *op : {"Elu", "LeakyRelu", "ThresholdedRelu"})
    table[op] = {lowerActivation, {"alpha"}};
  table["HardSigmoid"] = {lowerActivation, {"alpha", "beta"}};
  table["Relu"] = {[](NodeScope &n) {
                     Tensor x = n.input(0);
                     n.output(x.isFloat() ? unary("relu", x) : binary("max", x, like(x, 0)));
                   },
                   {}};
  table["PRelu"] = {lowerPRelu, {}};
  table["Gelu"] = {lowerGelu, {"approximate"}};
  table["Celu"] = {[](NodeScope &n) {
                     double alpha = n.number("alpha", 1);
                     n.output(exponentialUnit(n.input(0), alpha, alpha));
                   },
                   {"alpha"}};
  table["Selu"] = {[](NodeScope &n) {
                     double alpha = n.number("alpha", 1.67326319217681884765625);
                     double gamma = n.number("gamma", 1.05070102214813232421875);
                     n.output(exponentialUnit(n.input(0), alpha, 1) * gamma);
                   },
                   {"alpha", "gamma"}};
  table["HardSwish"] = {[](NodeScope &n) {
                          Tensor x = n.input(0);
                          n.output(x * hardSigmoid(x, 1.0 / 6, 0.5));
                        },
                        {}};
  table["Swish"] = {[](NodeScope &n) {
                      Tensor x = n.input(0);
                      double alpha = n.number("alpha", 1);
                      n.output(alpha == 1 ? unary("silu", x) : x * unary("sigmoid", x * alpha));
                    },
                    {"alpha"}};
  table["Mish"] = {[](NodeScope &n) {
                     Tensor x = n.input(0);
                     n.output(x * unary("tanh", softplus(x)));
                   },
                   {}};
  table["Shrink"] = {lowerShrink, {"bias", "lambd"}};
  table["Softmax"] = {[](NodeScope &n) {
                        alongAxis(n, [](const Tensor &x, int64_t axis) { return along("softmax", x, axis); });
                      },
                      {"axis"}};
  table["LogSoftmax"] = {
      [](NodeScope &n) {
        alongAxis(n, [](const Tensor &x, int64_t axis) { return along("log_softmax", x, axis); });
      },
      {"axis"}};
  table["Hardmax"] = {[](NodeScope &n) { alongAxis(n, hardmax); }, {"axis"}};
}

} // namespace gpuc::onnx
