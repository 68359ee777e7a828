//===- CommandForms.cpp - What stands outside of kernels, and what becomes of it ===//

#include "passes/kernels/CommandForms.h"

#include "dialects/gpuc/Windows.h"
#include "passes/base/AttentionViews.h"

using namespace mlir;

namespace gpuc {

std::optional<CommandForm> commandFormOf(Operation *op) {
  if (isa<ir::FusedOp>(op))
    return CommandForm::launch;
  if (isa<ir::MatmulOp>(op))
    return CommandForm::matmul;
  if (ir::isConvolution(op))
    return CommandForm::convolution;
  if (isAttention(op))
    return CommandForm::attention;
  if (isa<ir::ScanOp>(op))
    return CommandForm::repeat;
  if (isa<ir::ReadOp, ir::ReshapeOp, ir::ConstantOp, ir::AssignOp>(op) || isAttentionView(op) ||
      isResultView(op))
    return CommandForm::none;
  return std::nullopt;
}

} // namespace gpuc
