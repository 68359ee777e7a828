//===- MatmulCommand.cpp - Verifier and cost of plan.matmul ----------------===//

#include "dialects/plan/ProductCommands.h"

using namespace mlir;

namespace gpuc::plan {

LogicalResult MatmulOp::verify() {
  if (failed(verifyTf32(*this)))
    return failure();
  if (failed(verifyUpdate(*this, " [matmul_C2]")))
    return failure();
  if ((getUpdate() || getSquares()) &&
      (getBias() || getRelu() || getMask() || getAccumulate() || getBatch() != 1))
    return emitOpError(getUpdate() ? "has an update, which takes" : "has squares, which are those of")
           << " one matrix that nothing else follows";
  if (getAccumulate() && (getBias() || getRelu() || getMask()))
    return emitOpError("adds to its result, which neither bias nor relu nor mask follows");
  if (getMask() && (getBias() || getRelu()))
    return emitOpError("has a mask, of a gradient, which neither bias nor relu follows");
  auto check = [&](Value buffer, StringRef name, int64_t elements) -> LogicalResult {
    int64_t has = rangeOf(buffer).size, needs = saturatingProduct({elements, ir::elementBytes(getElement())});
    if (has != needs)
      return emitOpError() << name << " has " << has << " bytes, " << elements << " elements take " << needs;
    return success();
  };
  if (getMask() &&
      failed(check(getMask(), "mask",
                   saturatingProduct({static_cast<int64_t>(getBatch()), static_cast<int64_t>(getM()),
                                      static_cast<int64_t>(getN())}))))
    return failure();
  return getBias() ? check(getBias(), "bias", getN()) : success();
}

int64_t MatmulOp::getFlops() { return flopsOfMatmul(getBatch(), getM(), getN(), getK(), opsBehind(*this)); }

} // namespace gpuc::plan
