//===- PointwiseOps.cpp - Arithmetic and functions of each element ----------===//

#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

namespace {

RankedTensorType typeOf(const Tensor &x) { return cast<RankedTensorType>(Graph::unwrap(x).getType()); }

/// `x op y` for two tensors; `name` is what errors call it.
template <typename OpType> Tensor binary(const char *name, const Tensor &x, const Tensor &y) {
  Graph *graph = Graph::of(name, {&x, &y});
  if (!graph)
    return {};
  if (x.dtype() != y.dtype())
    return graph->fail(
        llvm::formatv("{0} takes operands of one element type, got {1} and {2}; convert one with to()", name,
                      nameOf(x.dtype()), nameOf(y.dtype())));
  if (x.dtype() == DataType::i1)
    return graph->fail(llvm::formatv("{0} takes numbers, got i1", name));
  std::optional<Shape> shape = broadcastShapes(x.shape(), y.shape());
  if (!shape)
    return graph->fail(llvm::formatv("{0} of {1} and {2}: the shapes do not broadcast to one another", name,
                                     toString(x.shape()), toString(y.shape())));
  Tensor lhs = broadcastTo(x, *shape), rhs = broadcastTo(y, *shape);
  if (!lhs.valid() || !rhs.valid())
    return {};
  return graph->emitTensor<OpType>(Graph::unwrap(lhs), Graph::unwrap(rhs));
}

/// A function of floating-point elements; `arguments` are the op's attributes.
template <typename OpType, typename... Args>
Tensor unary(const char *name, const Tensor &x, Args... arguments) {
  if (!x.graph() || !x.graph()->usable(name, {&x}) || !x.graph()->isFloating(name, x))
    return {};
  return x.graph()->emitTensor<OpType>(Graph::unwrap(x), arguments...);
}

/// A tensor like x, each element `number`.
Tensor constantLike(const Tensor &x, double number) {
  if (!x.graph() || !x.graph()->usable("a constant", {&x}))
    return {};
  if (!x.graph()->isFloating("arithmetic with a number", x))
    return {};
  return x.graph()->emitTensor<ir::ConstantOp>(typeOf(x), number);
}

} // namespace

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Tensor operator+(const Tensor &lhs, const Tensor &rhs) { return binary<ir::AddOp>("add", lhs, rhs); }
Tensor operator-(const Tensor &lhs, const Tensor &rhs) { return binary<ir::SubOp>("sub", lhs, rhs); }
Tensor operator*(const Tensor &lhs, const Tensor &rhs) { return binary<ir::MulOp>("mul", lhs, rhs); }
Tensor operator/(const Tensor &lhs, const Tensor &rhs) { return binary<ir::DivOp>("div", lhs, rhs); }
Tensor maximum(const Tensor &lhs, const Tensor &rhs) { return binary<ir::MaxOp>("maximum", lhs, rhs); }
Tensor minimum(const Tensor &lhs, const Tensor &rhs) { return binary<ir::MinOp>("minimum", lhs, rhs); }

Tensor operator+(const Tensor &lhs, double rhs) { return lhs + constantLike(lhs, rhs); }
Tensor operator-(const Tensor &lhs, double rhs) { return lhs - constantLike(lhs, rhs); }
Tensor operator*(const Tensor &lhs, double rhs) { return lhs * constantLike(lhs, rhs); }
Tensor operator/(const Tensor &lhs, double rhs) { return lhs / constantLike(lhs, rhs); }
Tensor operator+(double lhs, const Tensor &rhs) { return constantLike(rhs, lhs) + rhs; }
Tensor operator-(double lhs, const Tensor &rhs) { return constantLike(rhs, lhs) - rhs; }
Tensor operator*(double lhs, const Tensor &rhs) { return constantLike(rhs, lhs) * rhs; }
Tensor operator/(double lhs, const Tensor &rhs) { return constantLike(rhs, lhs) / rhs; }
Tensor pow(const Tensor &base, double exponent) {
  return binary<ir::PowOp>("pow", base, constantLike(base, exponent));
}

Tensor notEqual(const Tensor &x, double number) {
  if (!x.graph() || !x.graph()->usable("notEqual", {&x}))
    return {};
  Tensor other = x.graph()->emitTensor<ir::ConstantOp>(typeOf(x), number);
  return x.graph()->emitTensor<ir::CompareOp>(ir::Comparison::ne, Graph::unwrap(x), Graph::unwrap(other));
}

//===----------------------------------------------------------------------===//
// Functions of each element
//===----------------------------------------------------------------------===//

Tensor operator-(const Tensor &x) { return unary<ir::NegOp>("neg", x); }
Tensor abs(const Tensor &x) { return unary<ir::AbsOp>("abs", x); }
Tensor exp(const Tensor &x) { return unary<ir::ExpOp>("exp", x); }
Tensor log(const Tensor &x) { return unary<ir::LogOp>("log", x); }
Tensor sqrt(const Tensor &x) { return unary<ir::SqrtOp>("sqrt", x); }
Tensor sin(const Tensor &x) { return unary<ir::SinOp>("sin", x); }
Tensor cos(const Tensor &x) { return unary<ir::CosOp>("cos", x); }
Tensor erf(const Tensor &x) { return unary<ir::ErfOp>("erf", x); }
Tensor tanh(const Tensor &x) { return unary<ir::TanhOp>("tanh", x); }
Tensor sigmoid(const Tensor &x) { return unary<ir::SigmoidOp>("sigmoid", x); }
Tensor relu(const Tensor &x) { return unary<ir::ReluOp>("relu", x); }
Tensor silu(const Tensor &x) { return unary<ir::SiluOp>("silu", x); }
Tensor gelu(const Tensor &x, bool approximate) { return unary<ir::GeluOp>("gelu", x, approximate); }

Tensor leakyRelu(const Tensor &x, double slope) {
  if (!x.graph())
    return {};
  return unary<ir::LeakyReluOp>("leakyRelu", x, x.graph()->builder.getF64FloatAttr(slope));
}

Tensor clamp(const Tensor &x, double low, double high) {
  if (!x.graph())
    return {};
  if (!(low <= high))
    return x.graph()->fail(llvm::formatv("clamp to [{0}, {1}]: the lower bound is above the upper",
                                         detail::numberText(low), detail::numberText(high)));
  OpBuilder &builder = x.graph()->builder;
  return unary<ir::ClampOp>("clamp", x, builder.getF64FloatAttr(low), builder.getF64FloatAttr(high));
}

Tensor dropout(const Tensor &x, double p) {
  if (!x.graph())
    return {};
  if (!(p >= 0 && p < 1))
    return x.graph()->fail("dropout with probability " + detail::numberText(p) + "; it lies in [0, 1)");
  OpBuilder &builder = x.graph()->builder;
  return unary<ir::DropoutOp>("dropout", x, builder.getF64FloatAttr(p),
                              builder.getI64IntegerAttr(x.graph()->nextRandomId()));
}

Tensor Tensor::to(DataType type) const {
  if (!graph_ || !graph_->usable("to", {this}))
    return {};
  if (type == dtype())
    return *this;
  return graph_->emitTensor<ir::CastOp>(graph_->tensorType(shape(), type), Graph::unwrap(*this));
}

} // namespace gpuc::nn
