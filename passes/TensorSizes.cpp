//===- TensorSizes.cpp - Tensors whose bytes can be counted ----------------===//

#include "passes/TensorSizes.h"

#include "dialects/gpuc/GpucDialect.h"

#include "mlir/IR/BuiltinTypes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gpuc {

static bool isCountable(RankedTensorType type) {
  int64_t bytes = ir::elementBytes(type.getElementType());
  return llvm::none_of(type.getShape(), [&](int64_t extent) {
    return !ShapedType::isDynamic(extent) && llvm::MulOverflow(bytes, extent, bytes);
  });
}

static LogicalResult check(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || isCountable(type))
    return success();
  return emitError(value.getLoc()) << "tensor of type " << type
                                   << " has 2^63 bytes or more; is the batch too large?";
}

LogicalResult checkTensorSizes(Operation *root) {
  auto all = [](ValueRange values) {
    return llvm::all_of(values, [](Value value) { return succeeded(check(value)); });
  };
  return success(!root->walk<WalkOrder::PreOrder>([&](Operation *op) {
                        bool fits = all(op->getResults());
                        for (Region &region : op->getRegions())
                          for (Block &block : region)
                            fits = fits && all(block.getArguments());
                        return WalkResult(success(fits));
                      })
                      .wasInterrupted());
}

} // namespace gpuc
