//===- Philox.cpp - Counter-based random bits -------------------------------===//

#include "passes/codegen/math/Philox.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace gpuc::codegen {

SmallVector<Expr, 4> emitPhiloxWords(Expr group, Expr seed, Expr step, Expr id) {
  Type word = group.builder().getI32Type(), wide = group.builder().getI64Type();
  // In lanes a word is the lower half of 64 bits, with anything in the upper half: that is how x86 multiplies
  // 32 bits by 32, and spares narrowing and widening in each round.
  const bool inLanes = group.lanes() > 1;
  auto low = [&](Expr x) { return inLanes ? x : narrow(x, word); };
  auto high = [&](Expr x) { return low(shiftRight(x, 32)); };
  auto times = [&](Expr x, int64_t multiplier) {
    Expr factor = inLanes ? x & x.integer(0xFFFFFFFF) : zeroExtend(x, wide);
    return factor * factor.integer(multiplier);
  };
  SmallVector<Expr, 4> c{low(group), high(group), low(step), high(step)};
  Expr key0 = low(seed) ^ high(seed), key1 = low(id);
  for (int round = 0; round < 10; ++round) {
    Expr product0 = times(c[0], 0xD2511F53), product1 = times(c[2], 0xCD9E8D57);
    c = {high(product1) ^ c[1] ^ key0, low(product1), high(product0) ^ c[3] ^ key1, low(product0)};
    key0 = key0 + key0.integer(0x9E3779B9); // golden ratio
    key1 = key1 + key1.integer(0xBB67AE85); // sqrt(3) - 1
  }
  if (inLanes)
    for (Expr &x : c)
      x = narrow(x, word);
  return c;
}

Expr emitPhiloxRun(Expr first, int64_t lanes, Expr seed, Expr step, Expr id) {
  ImplicitLocOpBuilder &builder = first.builder();
  Expr counts = laneNumbers(builder, builder.getI64Type(), lanes / 4);
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
