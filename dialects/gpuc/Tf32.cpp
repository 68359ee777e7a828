//===- Tf32.cpp - Products of f32 that a GPU may round -----------------------===//

#include "dialects/gpuc/Tf32.h"

using namespace mlir;

namespace gpuc::ir {

bool holdsF32Products(Operation *op) {
  return op->hasTrait<MultipliesMatrices>() && getElementTypeOrSelf(op->getOperand(0)).isF32();
}

bool multipliesOnTensorCores(Operation *op) {
  Type element = getElementTypeOrSelf(op->getOperand(0));
  return element.isF16() || element.isBF16() || isTf32(op);
}

void markTf32(Operation *op) {
  op->walk([](Operation *inner) {
    if (holdsF32Products(inner))
      inner->setAttr(kTf32Attr, UnitAttr::get(inner->getContext()));
  });
}

LogicalResult verifyTf32(Operation *op, Attribute mark) {
  if (!isa<UnitAttr>(mark))
    return op->emitOpError("gpuc.tf32 is a mark without a value [tf32_C1]");
  if (!holdsF32Products(op))
    return op->emitOpError("gpuc.tf32 marks products of f32 alone [tf32_C2]");
  return success();
}

} // namespace gpuc::ir
