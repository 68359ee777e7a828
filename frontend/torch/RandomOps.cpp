//===- RandomOps.cpp - PyTorch's ops that draw --------------------------------===//
//
// They draw from gpuc's generator, a function of seed, step and the element's index, and so other numbers
// than eager PyTorch: each step draws anew. Dropout, which keeps no numbers, stands with the elementwise ops.
//
//===----------------------------------------------------------------------===//

#include "frontend/torch/OpTable.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc::torch {
namespace {

/// The module's variable `name`. The pass that expands the recipe takes a counter that is there for its own.
Tensor readCounter(Emitter &emitter, StringRef name) {
  Operation *top = emitter.builder.getInsertionBlock()->getParentOp();
  auto module = isa<ModuleOp>(top) ? cast<ModuleOp>(top) : top->getParentOfType<ModuleOp>();
  RankedTensorType type = emitter.tensorType({}, DataType::i64);
  if (!module.lookupSymbol(name)) {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto zeros = ir::SpecAttr::get(builder.getContext(), "zeros", builder.getDictionaryAttr({}));
    ir::VariableOp::create(builder, NameLoc::get(builder.getStringAttr(name)), name, type, zeros,
                           /*frozen=*/false, "counter");
  }
  auto symbol = FlatSymbolRefAttr::get(emitter.builder.getContext(), name);
  return emitter.op("read", {}, emitter.builder.getNamedAttr("variable", symbol), type);
}

/// gpuc.`name` in the shape that PyTorch has found, with two numbers as attributes.
Tensor draw(OpScope &op, DataType type, StringRef name, NamedAttribute first, NamedAttribute second) {
  if (!gpuc::isFloat(type))
    return op.fail("draws integers");
  Emitter &e = op.emitter;
  return e.op(name, {readCounter(e, "seed"), readCounter(e, "step")},
              {e.attribute("id", op.nextRandomId()), first, second}, e.tensorType(op.shape(), type));
}

Tensor drawUniform(OpScope &op, DataType type) {
  return draw(op, type, "random_uniform", op.emitter.attribute("low", 0.0),
              op.emitter.attribute("high", 1.0));
}

void lowerUniform(OpScope &op) { op.output(drawUniform(op, op.type())); }

void lowerNormal(OpScope &op) {
  op.output(draw(op, op.type(), "random_normal", op.emitter.attribute("mean", 0.0),
                 op.emitter.attribute("deviation", 1.0)));
}

/// 1 with the probability p, or with that which stands at the element's place, else 0.
void lowerBernoulli(OpScope &op) {
  Tensor u = drawUniform(op, op.type());
  op.output(
      cast(compare("lt", u, op.has("p") ? like(u, op.number("p", 0.5)) : op.tensor("self")), op.type()));
}

} // namespace

void addRandom(OpTable &table) {
  const std::vector<std::string> made = {"size", "dtype", "layout", "device", "pin_memory"};
  const std::vector<std::string> like = {"self", "dtype", "layout", "device", "pin_memory", "memory_format"};
  table["rand.default"] = {lowerUniform, made};
  table["rand_like.default"] = {lowerUniform, like};
  table["randn.default"] = {lowerNormal, made};
  table["randn_like.default"] = {lowerNormal, like};
  table["bernoulli.default"] = {lowerBernoulli, {"self"}};
  table["bernoulli.p"] = {lowerBernoulli, {"self", "p"}};
}

} // namespace gpuc::torch
