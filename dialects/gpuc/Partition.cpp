//===- Partition.cpp - The parts of a batch ----------------------------------===//

#include "dialects/gpuc/GpucOps.h"
#include "dialects/gpuc/Tf32.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace gpuc::ir {

LogicalResult PartitionAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t ranks,
                                    int64_t microbatches, int64_t slices, int64_t rows, bool distributed) {
  const int64_t counts[] = {ranks, microbatches, slices, rows};
  if (llvm::any_of(counts, [](int64_t count) { return count < 1; }))
    return emitError() << "ranks, microbatches, slices and rows must be at least 1, but are " << ranks << ", "
                       << microbatches << ", " << slices << " and " << rows << " [partition_C3]";
  if (distributed && ranks != 1)
    return emitError() << "how many ranks there are is not known where they are distributed, but it says "
                       << ranks << " [partition_C6]";
  int64_t most = INT32_MAX;
  for (int64_t count : counts)
    most /= count;
  if (most == 0)
    return emitError() << ranks << " ranks of " << microbatches << " microbatches of " << slices
                       << " slices of " << rows << " rows are 2^31 rows or more: take fewer [partition_C4]";
  return success();
}

PartitionAttr PartitionAttr::withoutInnermost() const {
  const int64_t rows = getInnermostParts() * getRows();
  if (isOverRanks() || (getBatchRows() == rows && !getDistributed()))
    return {};
  return get(getContext(), getRanks(), isSideBySide() ? getMicrobatches() : 1, /*slices=*/1, rows,
             getDistributed());
}

/// `type` is what holds the rows, or null where nothing does.
static LogicalResult verifyPartition(Operation *op, NamedAttribute attribute, Type type) {
  if (llvm::is_contained({"gpuc.accumulate", "gpuc.shards", "gpuc.per_row"}, attribute.getName()))
    return op->emitOpError() << attribute.getName().strref() << " is of an older gpuc, which had no "
                             << kPartitionAttr << ": emit this text anew [partition_C5]";
  if (attribute.getName() != kPartitionAttr)
    return success();
  auto partition = dyn_cast<PartitionAttr>(attribute.getValue());
  if (!partition)
    return op->emitOpError() << kPartitionAttr << " must be a #gpuc.partition, but is "
                             << attribute.getValue() << " [partition_C1]";
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  // Before gpuc-specialize-batch a `?` stands for the rows.
  if (!type || (tensor && tensor.getRank() != 0 &&
                (tensor.isDynamicDim(0) || tensor.getDimSize(0) == partition.getRows())))
    return success();
  return op->emitOpError() << kPartitionAttr << " says that " << type << " begins with the "
                           << partition.getRows() << " rows of a part [partition_C2]";
}

LogicalResult GpucDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kTf32Attr)
    return verifyTf32(op, attribute.getValue());
  // Each part draws its own, wherever its rows stand in what is drawn.
  if (isa<RandomOpInterface, AttentionOp, AttentionGradientOp, ModuleOp, func::FuncOp>(op) ||
      attribute.getName() != kPartitionAttr)
    return verifyPartition(op, attribute, Type());
  return op->emitOpError() << kPartitionAttr
                           << " stands at modules, functions, their arguments and what draws "
                           << "random numbers alone [partition_C2]";
}

LogicalResult GpucDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attribute) {
  return verifyPartition(op, attribute, cast<FunctionOpInterface>(op).getArgumentTypes()[argument]);
}

} // namespace gpuc::ir
