//===- Philox.cpp - Counter-based random bits -------------------------------===//

#include "passes/codegen/Philox.h"

using namespace mlir;

namespace gpuc::codegen {

SmallVector<Expr, 4> emitPhiloxWords(Expr group, Expr seed, Expr step, Expr id) {
  Type word = group.builder().getI32Type(), wide = group.builder().getI64Type();
  auto low = [&](Expr x) { return narrow(x, word); };
  auto high = [&](Expr x) { return narrow(shiftRight(x, 32), word); };
  Expr c0 = low(group), c1 = high(group), c2 = low(step), c3 = high(step);
  Expr key0 = low(seed) ^ high(seed), key1 = low(id);
  for (int round = 0; round < 10; ++round) {
    Expr product0 = zeroExtend(c0, wide) * group.integer(0xD2511F53);
    Expr product1 = zeroExtend(c2, wide) * group.integer(0xCD9E8D57);
    c0 = high(product1) ^ c1 ^ key0;
    c1 = low(product1);
    c2 = high(product0) ^ c3 ^ key1;
    c3 = low(product0);
    key0 = key0 + key0.integer(0x9E3779B9); // golden ratio
    key1 = key1 + key1.integer(0xBB67AE85); // sqrt(3) - 1
  }
  return {c0, c1, c2, c3};
}

Expr emitPhilox(Expr element, Expr seed, Expr step, Expr id) {
  SmallVector<Expr, 4> words = emitPhiloxWords(shiftRight(element, 2), seed, step, id);
  Expr position = narrow(element, element.builder().getI32Type());
  Expr odd = notEqual(position & position.integer(1), position.integer(0));
  Expr upper = notEqual(position & position.integer(2), position.integer(0));
  return select(upper, select(odd, words[3], words[2]), select(odd, words[1], words[0]));
}

} // namespace gpuc::codegen
