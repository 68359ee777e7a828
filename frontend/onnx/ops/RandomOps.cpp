//===- RandomOps.cpp - Ops that draw ----------------------------------------===//
//
// They draw from gpuc's generator, a function of seed and step, and so other numbers than the framework that
// exported them: in training each step draws anew, in inference each call draws the same. An attribute `seed`
// is not followed, since the plan has one of its own.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/OpTable.h"

namespace gpuc::onnx {
namespace {

/// gpuc.`op` with two numbers as attributes.
Tensor draw(NodeScope &node, const char *op, const Shape &shape, DataType type, mlir::NamedAttribute first,
            mlir::NamedAttribute second) {
  if (node.failed())
    return {};
  if (node.importer().inLoop())
    return node.fail("draws in a loop: export the model for inference, or draw outside of it");
  if (!gpuc::isFloat(type))
    return node.fail("draws integers");
  Emitter &e = node.emitter;
  Tensor seed = node.importer().readCounter("seed"), step = node.importer().readCounter("step");
  return e.op(op, {seed, step}, {e.attribute("id", node.importer().nextRandomId()), first, second},
              e.tensorType(shape, type));
}

Tensor drawUniform(NodeScope &node, const Shape &shape, DataType type, double low, double high) {
  Emitter &e = node.emitter;
  return draw(node, "random_uniform", shape, type, e.attribute("low", low), e.attribute("high", high));
}

Tensor drawNormal(NodeScope &node, const Shape &shape, DataType type) {
  Emitter &e = node.emitter;
  return draw(node, "random_normal", shape, type, e.attribute("mean", node.number("mean", 0)),
              e.attribute("deviation", node.number("scale", 1)));
}

/// The shape that the attribute asks for, or that of the input; the type likewise.
template <bool like> std::optional<std::pair<Shape, DataType>> targetOf(NodeScope &node) {
  std::optional<DataType> type = like && !node.hasAttribute("dtype") ? node.typeOf(0) : castTarget(node);
  if (!type || node.failed())
    return std::nullopt;
  if (!like && !node.hasAttribute("shape"))
    return node.fail("needs a shape");
  return std::pair(like ? node.shapeOf(0) : node.integers("shape", {}), *type);
}

template <bool like> void lowerNormal(NodeScope &node) {
  if (auto target = targetOf<like>(node))
    node.output(drawNormal(node, target->first, target->second));
}

template <bool like> void lowerUniform(NodeScope &node) {
  if (auto target = targetOf<like>(node))
    node.output(
        drawUniform(node, target->first, target->second, node.number("low", 0), node.number("high", 1)));
}

/// 1 with the probability that stands at the element's place, else 0.
void lowerBernoulli(NodeScope &node) {
  Tensor x = node.input(0);
  std::optional<DataType> type = node.hasAttribute("dtype") ? castTarget(node) : x.type();
  if (x && type && !node.failed())
    node.output(cast(compare("lt", drawUniform(node, x.shape(), x.type(), 0, 1), x), *type));
}

} // namespace

void addRandom(OpTable &table) {
  table["RandomNormal"] = {lowerNormal<false>, {"dtype", "mean", "scale", "seed", "shape"}};
  table["RandomNormalLike"] = {lowerNormal<true>, {"dtype", "mean", "scale", "seed"}};
  table["RandomUniform"] = {lowerUniform<false>, {"dtype", "high", "low", "seed", "shape"}};
  table["RandomUniformLike"] = {lowerUniform<true>, {"dtype", "high", "low", "seed"}};
  table["Bernoulli"] = {lowerBernoulli, {"dtype", "seed"}};
}

} // namespace gpuc::onnx
