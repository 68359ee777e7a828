//===- RandomDecompositions.cpp - Numbers from random bits ------------------===//

#include "dialects/gpuc/Expr.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace gpuc::ir {

/// Where an op's draws come from; draw k of an element has its own id.
struct Draws {
  Expr seed, step;
  int64_t id;
  ArrayRef<int64_t> shape;

  /// 32 bits an element.
  Expr bits(int64_t draw) const {
    auto type = RankedTensorType::get(shape, IntegerType::get(seed.type().getContext(), 32));
    return seed.make<RandomBitsOp>(type, seed.value(), step.value(), id + draw * randomDrawStride, Value());
  }
};

/// The `count` highest bits, as the fraction that they are of 2^count, in f32 (up to 24 bits) or f64: exact.
/// There are no unsigned i32 here. With the highest bit flipped the fraction less one half is signed.
static Expr highBitsFraction(Expr bits, int64_t count, Type element) {
  double sign = -std::exp2(31), mask = -std::exp2(32 - count);
  Expr high = (bits ^ sign) & mask;
  return cast(high, element) * std::exp2(-32) + 0.5;
}

/// Uniform in [0, 1): as many bits as the element type has digits, so that no rounding ever gives 1. f64
/// takes 27 bits from draw `first` and 26 from the next one.
static Expr unitUniform(const Draws &draws, int64_t first, FloatType element) {
  MLIRContext *context = element.getContext();
  if (element.isF64()) {
    Expr high = highBitsFraction(draws.bits(first), 27, element);
    Expr low = highBitsFraction(draws.bits(first + 1), 26, element);
    return high + low * std::exp2(-27);
  }
  return cast(highBitsFraction(draws.bits(first), element.getFPMantissaWidth(), Float32Type::get(context)),
              element);
}

SmallVector<Value> RandomUniformOp::decompose(OpBuilder &builder) {
  Expr seed(builder, getLoc(), getSeed());
  auto element = cast<FloatType>(tensorType(getResult()).getElementType());
  Expr unit = unitUniform({seed, seed.at(getStep()), static_cast<int64_t>(getId()), shapeOf(getResult())}, 0,
                          element);
  double low = getLow().convertToDouble(), high = getHigh().convertToDouble();
  if (low == 0 && high == 1)
    return {unit};
  // The product may round up to `high`, which the interval leaves out.
  APFloat below = cast<FloatAttr>(splatNumber(element, high)).getValue();
  below.next(/*nextDown=*/true);
  return {min(unit * (high - low) + low, below.convertToDouble())};
}

/// Box and Muller's transform [1958]: sqrt(-2 log u) cos(2πv), with u in (0, 1], whose logarithm is finite.
SmallVector<Value> RandomNormalOp::decompose(OpBuilder &builder) {
  Expr seed(builder, getLoc(), getSeed());
  auto result = cast<FloatType>(tensorType(getResult()).getElementType());
  // In f16 and bf16 the tails would be coarse: the transform is done in f32.
  auto element = result.getWidth() < 32 ? cast<FloatType>(Type(builder.getF32Type())) : result;
  Draws draws{seed, seed.at(getStep()), static_cast<int64_t>(getId()), shapeOf(getResult())};
  Expr u = 1 - unitUniform(draws, 0, element);
  Expr v = unitUniform(draws, element.isF64() ? 2 : 1, element);
  Expr normal = sqrt(-2 * log(u)) * cos(v * (2 * std::numbers::pi));
  return {cast(normal * getDeviation().convertToDouble() + getMean().convertToDouble(), result)};
}

/// Keeps an element where its uniform number in f32, whatever the operand's type, is at least p.
SmallVector<Value> DropoutOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getOperand());
  double p = getP().convertToDouble();
  if (p == 0)
    return {x};
  if (p == 1)
    return {x.constant(0)};
  auto counter = RankedTensorType::get({}, builder.getI64Type());
  Expr seed = x.make<ReadOp>(counter, "seed"), step = x.make<ReadOp>(counter, "step");
  auto uniformType = RankedTensorType::get(x.shape(), builder.getF32Type());
  Expr uniform = x.make<RandomUniformOp>(uniformType, seed.value(), step.value(),
                                         static_cast<int64_t>(getId()), APFloat(0.0), APFloat(1.0));
  return {select(uniform >= p, x * (1 / (1 - p)), 0.0)};
}

SmallVector<Value> DropoutOp::buildInference(OpBuilder &) { return {getOperand()}; }

} // namespace gpuc::ir
