//===- CommandForms.cpp - What stands outside of kernels, and what becomes of it ===//

#include "passes/kernels/CommandForms.h"

#include "passes/base/AttentionViews.h"

using namespace mlir;

namespace gpuc {

std::optional<CommandForm> commandFormOf(Operation *op) {
  if (isa<ir::FusedOp>(op))
    return CommandForm::launch;
  if (isa<ir::ProductOpInterface>(op))
    return CommandForm::product;
  if (isAttention(op))
    return CommandForm::attention;
  if (isa<ir::AllReduceOp, ir::ReduceScatterOp, ir::AllGatherOp, ir::ReduceToOwnersOp,
          ir::GatherFromOwnersOp>(op))
    return CommandForm::collective;
  if (isa<ir::ScanOp>(op))
    return CommandForm::repeat;
  if (isa<ir::ReadOp, ir::ReshapeOp, ir::ConstantOp, ir::AssignOp>(op) || isAttentionView(op) ||
      isResultView(op))
    return CommandForm::none;
  return std::nullopt;
}

} // namespace gpuc
