//===- CutScans.cpp - A long loop over time as a loop over chunks of it -----===//
//
// Contract: the results stay the same up to the order of sums. A loop of T steps becomes one over T / k
// chunks of k steps, with the loop over a chunk's steps in it. What gpuc-hoist-from-scans takes out of a
// loop, the products of an input and the sums of weights' gradients, it then takes out of a chunk's loop, so
// that the stacks which this needs are as long as a chunk, not as the sequence. And the backward pass of a
// chunk has all that its forward pass needs, should gpuc-checkpoint have it computed again.
//
// k is the least divisor of T from √T on, so that what lies between chunks and what lies in one are about as
// much (T. Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016). It follows from T alone: bits
// do not depend on what is kept.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/IRMapping.h"

namespace gpuc {
#define GEN_PASS_DEF_CUTSCANSPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// Shorter loops take little memory, and their products are better whole.
constexpr int64_t kLeastSteps = 128, kLeastChunkSteps = 16;

/// The steps of a chunk; none if the loop is short, or has no divisor that makes a few chunks of it.
std::optional<int64_t> chunkSteps(int64_t steps) {
  if (steps < kLeastSteps)
    return std::nullopt;
  for (int64_t length = kLeastChunkSteps; 4 * length <= steps; ++length)
    if (steps % length == 0 && length * length >= steps)
      return length;
  return std::nullopt;
}

/// Whether each iteration waits for the one before, and nothing was decided yet on how it is done.
bool isOverTime(ir::ScanOp scan) {
  return !scan.getInits().empty() && !scan.getRecompute() && !scan.getChunked() && !scan.getParallel() &&
         !scan.getBatchFirst() && !scan->getParentOfType<ir::ScanOp>();
}

class Cutting {
public:
  Cutting(ir::ScanOp scan, int64_t steps)
      : scan_(scan), steps_(steps), chunks_(scan.getTripCount() / steps), builder_(scan) {}

  void run() {
    auto inputs = llvm::map_to_vector(scan_.getInputs(), [&](Value input) { return inChunks(input); });
    auto outer = ir::ScanOp::create(
        builder_, scan_.getLoc(), inputs, scan_.getInits(), scan_.getCaptures(), chunks_,
        /*batchFirst=*/false, scan_.getReverse(),
        [&](OpBuilder &builder, Location, ValueRange slices, ValueRange carries, ValueRange captured) {
          return llvm::to_vector_of<Value>(chunk(builder, slices, carries, captured)->getResults());
        });
    outer.setChunked(true);
    SmallVector<Value> results(outer.getFinals());
    for (auto [whole, result] : llvm::zip_equal(scan_.getOutputs(), outer.getOutputs()))
      results.push_back(reshaped(result, whole.getType()));
    scan_.replaceAllUsesWith(results);
    scan_.erase();
  }

private:
  Value reshaped(Value value, Type type) {
    return ir::ReshapeOp::create(builder_, scan_.getLoc(), type, value);
  }

  /// [T, …] as [T / k, k, …].
  Value inChunks(Value stack) {
    Type slice = ir::ScanOp::sliceType(stack.getType());
    return reshaped(stack, ir::ScanOp::stackType(ir::ScanOp::stackType(slice, steps_), chunks_));
  }

  /// The loop over the steps of a chunk.
  ir::ScanOp chunk(OpBuilder &builder, ValueRange slices, ValueRange carries, ValueRange captured) {
    return ir::ScanOp::create(
        builder, scan_.getLoc(), slices, carries, captured, steps_, /*batchFirst=*/false, scan_.getReverse(),
        [&](OpBuilder &inside, Location, ValueRange innerSlices, ValueRange innerCarries,
            ValueRange innerCaptured) { return step(inside, innerSlices, innerCarries, innerCaptured); });
  }

  /// What an iteration does.
  SmallVector<Value> step(OpBuilder &builder, ValueRange slices, ValueRange carries, ValueRange captured) {
    IRMapping mapping;
    mapping.map(scan_.getSlices(), slices);
    mapping.map(scan_.getCarries(), carries);
    mapping.map(scan_.getCaptured(), captured);
    for (Operation &op : scan_.getBlock().without_terminator())
      builder.clone(op, mapping);
    return llvm::map_to_vector(scan_.getBlock().getTerminator()->getOperands(),
                               [&](Value value) { return mapping.lookup(value); });
  }

  ir::ScanOp scan_;
  const int64_t steps_, chunks_;
  OpBuilder builder_;
};

class CutScansPass : public impl::CutScansPassBase<CutScansPass> {
  void runOnOperation() override {
    SmallVector<std::pair<ir::ScanOp, int64_t>> cuts;
    getOperation().walk([&](ir::ScanOp scan) {
      if (isOverTime(scan))
        if (std::optional<int64_t> steps = chunkSteps(scan.getTripCount()))
          cuts.push_back({scan, *steps});
    });
    if (cuts.empty())
      return markAllAnalysesPreserved(); // nor is the module verified again
    for (auto [scan, steps] : cuts)
      Cutting(scan, steps).run();
  }
};

} // namespace
} // namespace gpuc
