//===- Random.cpp - Draws from Philox4x32-10 ---------------------------------===//

#include "runtime/base/philox.h"
#include "test/reference/OpTable.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace gpuc::reference {

/// Where an op's draws come from. A further draw of an element has an id of its own.
struct Stream {
  uint64_t seed, step, id;

  uint32_t bits(int64_t element, int64_t draw = 0) const {
    auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
    uint64_t block = static_cast<uint64_t>(element) / 4;
    uint64_t own = id + static_cast<uint64_t>(draw * ir::randomDrawStride);
    PhiloxCounter words = philox4x32({low(block), low(block >> 32), low(step), low(step >> 32)},
                                     {low(seed) ^ low(seed >> 32), low(own)});
    return words[element % 4];
  }

  /// The `count` highest bits, as a fraction of 2^count.
  double fraction(int64_t element, int64_t draw, int count) const {
    return std::ldexp(bits(element, draw) >> (32 - count), -count);
  }

  /// Uniform in [0, 1), a bit for each digit of the type; f64 takes 27 bits of one draw and 26 of the next.
  double uniform(int64_t element, int64_t draw, Type type) const {
    if (type.isF64())
      return fraction(element, draw, 27) + std::ldexp(fraction(element, draw + 1, 26), -27);
    return fraction(element, draw, static_cast<int>(llvm::cast<FloatType>(type).getFPMantissaWidth()));
  }
};

template <typename Op> static Stream streamOf(Op op, Operands x) {
  return {static_cast<uint64_t>(x[0].elements[0].integer), static_cast<uint64_t>(x[1].elements[0].integer),
          op.getId()};
}

static Tensor randomBits(ir::RandomBitsOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  Stream stream = streamOf(op, x);
  int64_t from = op.getFrom() ? x[2].elements[0].integer : 0;
  for (int64_t i = 0; i < result.size(); ++i)
    result.elements[i].integer = static_cast<int32_t>(stream.bits(from + i));
  return result;
}

/// The number before `x` in the type.
static double below(double x, Type element) {
  APFloat number(x);
  bool lost;
  number.convert(llvm::cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  number.next(/*nextDown=*/true);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return number.convertToDouble();
}

static Tensor randomUniform(ir::RandomUniformOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  Type element = result.type.getElementType();
  Stream stream = streamOf(op, x);
  double low = op.getLow().convertToDouble(), high = op.getHigh().convertToDouble();
  for (int64_t i = 0; i < result.size(); ++i) {
    double drawn = low + stream.uniform(i, 0, element) * (high - low);
    result.elements[i].real = std::min(drawn, below(high, element)); // high itself is left out
  }
  return result;
}

/// Box and Muller: sqrt(-2 log u) cos(2πv) with u in (0, 1]; f16 and bf16 are drawn as f32.
static Tensor randomNormal(ir::RandomNormalOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  Type element = result.type.getElementType();
  if (element.getIntOrFloatBitWidth() < 32)
    element = Float32Type::get(op.getContext());
  Stream stream = streamOf(op, x);
  for (int64_t i = 0; i < result.size(); ++i) {
    double u = 1 - stream.uniform(i, 0, element), v = stream.uniform(i, element.isF64() ? 2 : 1, element);
    double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    result.elements[i].real = op.getMean().convertToDouble() + op.getDeviation().convertToDouble() * normal;
  }
  return result;
}

/// Where the uniform number in f32 of the variables @seed and @step is at least p.
bool isKept(const Interpreter &state, uint64_t id, double p, int64_t element) {
  auto counter = [&](const char *name) {
    return static_cast<uint64_t>(state.variables.at(name).elements[0].integer);
  };
  return Stream{counter("seed"), counter("step"), id}.fraction(element, 0, 24) >= static_cast<float>(p);
}

static Tensor dropout(ir::DropoutOp op, Operands x, const Interpreter &state) {
  Tensor result(x[0].type);
  double p = op.getP().convertToDouble();
  if (p == 0)
    return x[0];
  if (p == 1)
    return result;
  for (int64_t i = 0; i < result.size(); ++i)
    result.elements[i].real = isKept(state, op.getId(), p, i) ? x[0].elements[i].real / (1 - p) : 0;
  return result;
}

void addRandomOps(OpTable &table) {
  table.add<ir::RandomBitsOp>(randomBits);
  table.add<ir::RandomUniformOp>(randomUniform);
  table.add<ir::RandomNormalOp>(randomNormal);
  table.add<ir::DropoutOp>(dropout);
}

} // namespace gpuc::reference
