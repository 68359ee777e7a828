//===- Philox.cpp - Counter-based random bits -------------------------------===//

#include "passes/codegen/Philox.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace gpuc::codegen {

static constexpr int64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
static constexpr int64_t kGoldenRatio = 0x9E3779B9, kRootOf3Less1 = 0xBB67AE85;
static constexpr int kRounds = 10;

static SmallVector<Expr, 4> emitScalarWords(Expr group, Expr seed, Expr step, Expr id) {
  Type word = group.builder().getI32Type(), wide = group.builder().getI64Type();
  auto low = [&](Expr x) { return narrow(x, word); };
  auto high = [&](Expr x) { return narrow(shiftRight(x, 32), word); };
  Expr c0 = low(group), c1 = high(group), c2 = low(step), c3 = high(step);
  Expr key0 = low(seed) ^ high(seed), key1 = low(id);
  for (int round = 0; round < kRounds; ++round) {
    Expr product0 = zeroExtend(c0, wide) * group.integer(kMultiplier0);
    Expr product1 = zeroExtend(c2, wide) * group.integer(kMultiplier1);
    c0 = high(product1) ^ c1 ^ key0;
    c1 = low(product1);
    c2 = high(product0) ^ c3 ^ key1;
    c3 = low(product0);
    key0 = key0 + key0.integer(kGoldenRatio);
    key1 = key1 + key1.integer(kRootOf3Less1);
  }
  return {c0, c1, c2, c3};
}

/// A word in the lower half of each 64-bit lane, anything in the upper half: that is how x86 multiplies
/// 32 bits by 32, and spares narrowing and widening in each round.
static SmallVector<Expr, 4> emitLaneWords(Expr group, Expr seed, Expr step, Expr id) {
  auto times = [](Expr x, int64_t multiplier) { return (x & x.integer(0xFFFFFFFF)) * x.integer(multiplier); };
  auto high = [](Expr x) { return shiftRight(x, 32); };
  Expr c0 = group, c1 = high(group), c2 = step, c3 = high(step);
  Expr key0 = seed ^ high(seed), key1 = id;
  for (int round = 0; round < kRounds; ++round) {
    Expr product0 = times(c0, kMultiplier0), product1 = times(c2, kMultiplier1);
    c0 = high(product1) ^ c1 ^ key0;
    c1 = product1;
    c2 = high(product0) ^ c3 ^ key1;
    c3 = product0;
    key0 = key0 + key0.integer(kGoldenRatio);
    key1 = key1 + key1.integer(kRootOf3Less1);
  }
  Type word = group.builder().getI32Type();
  return {narrow(c0, word), narrow(c1, word), narrow(c2, word), narrow(c3, word)};
}

SmallVector<Expr, 4> emitPhiloxWords(Expr group, Expr seed, Expr step, Expr id) {
  return group.lanes() > 1 ? emitLaneWords(group, seed, step, id) : emitScalarWords(group, seed, step, id);
}

Expr emitPhiloxRun(Expr first, int64_t lanes, Expr seed, Expr step, Expr id) {
  ImplicitLocOpBuilder &builder = first.builder();
  auto numbers = llvm::to_vector(llvm::seq<int64_t>(0, lanes / 4));
  auto type = VectorType::get({lanes / 4}, builder.getI64Type());
  Expr counts(builder,
              arith::ConstantOp::create(builder, type, DenseElementsAttr::get(type, ArrayRef(numbers))));
  auto spread = [&](Expr x) { return splat(x, lanes / 4); };
  SmallVector<Expr, 4> words =
      emitPhiloxWords(spread(shiftRight(first, 2)) + counts, spread(seed), spread(step), spread(id));
  auto interleaved = [&](Expr a, Expr b) {
    return Expr(builder, vector::InterleaveOp::create(builder, a.value(), b.value()));
  };
  return interleaved(interleaved(words[0], words[2]), interleaved(words[1], words[3]));
}

Expr emitPhilox(Expr element, Expr seed, Expr step, Expr id) {
  SmallVector<Expr, 4> words = emitPhiloxWords(shiftRight(element, 2), seed, step, id);
  Expr position = narrow(element, element.builder().getI32Type());
  Expr odd = notEqual(position & position.integer(1), position.integer(0));
  Expr upper = notEqual(position & position.integer(2), position.integer(0));
  return select(upper, select(odd, words[3], words[2]), select(odd, words[1], words[0]));
}

} // namespace gpuc::codegen
