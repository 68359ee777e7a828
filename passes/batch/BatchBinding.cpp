//===- BatchBinding.cpp - A number for the leading `?` ------------------------===//

#include "passes/batch/Parts.h"

#include "dialects/gpuc/CountsRows.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace gpuc {

bool isDynamic(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.hasStaticShape();
}

void bindBatch(Operation *root, int64_t batch) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([batch](RankedTensorType type) -> std::optional<Type> {
    if (type.getRank() == 0 || !type.isDynamicDim(0))
      return std::nullopt;
    SmallVector<int64_t> shape(type.getShape());
    shape.front() = batch;
    return type.clone(shape);
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

void markRows(func::FuncOp function, ir::PartitionAttr partition) {
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isDynamic(type) || function.getArgAttr(index, kHasRowsAttr))
      function.setArgAttr(index, ir::kPartitionAttr, partition);
  function.walk([&](Operation *op) {
    if (isa<ir::RandomOpInterface, ir::AttentionOp>(op) &&
        (isDynamic(op->getResult(0).getType()) || op->hasAttr(kHasRowsAttr)))
      op->setAttr(ir::kPartitionAttr, partition);
  });
}

void forgetRows(func::FuncOp function) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    function.removeArgAttr(index, kHasRowsAttr);
  function.walk([](Operation *op) { op->removeAttr(kHasRowsAttr); });
}

} // namespace gpuc
