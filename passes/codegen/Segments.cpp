//===- Segments.cpp - Kernels of several index spaces ------------------------===//

#include "passes/codegen/Segments.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

bool isSegmented(Block &body) { return !body.empty() && isa<FusedOp>(body.front()); }

LogicalResult checkSegments(Block &body) {
  size_t results = 0;
  for (Operation &op : body.without_terminator()) {
    auto fused = dyn_cast<FusedOp>(op);
    if (!fused || isSegmented(fused.getBody().front()) ||
        !llvm::all_of(fused.getInputs(), llvm::IsaPred<BlockArgument>) ||
        !llvm::all_of(fused.getOutputs(), [](Value output) { return output.hasOneUse(); }))
      return failure();
    results += fused.getNumResults();
  }
  // Each is read once, and nobody but the yield can read it.
  return success(body.back().getNumOperands() == results &&
                 llvm::none_of(body.back().getOperands(), llvm::IsaPred<BlockArgument>));
}

SmallVector<Segment> segmentsOf(Block &body) {
  SmallVector<Segment> segments;
  for (auto fused : body.getOps<FusedOp>()) {
    Segment segment{&fused.getBody().front(), {}};
    for (Value input : fused.getInputs())
      segment.operands.push_back(cast<BlockArgument>(input).getArgNumber());
    for (Value output : fused.getOutputs())
      segment.operands.push_back(body.getNumArguments() + output.getUses().begin()->getOperandNumber());
    segments.push_back(std::move(segment));
  }
  return segments;
}

} // namespace gpuc::codegen
