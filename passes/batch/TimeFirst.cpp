//===- TimeFirst.cpp - Loops over the first dimension ------------------------===//

#include "passes/batch/TimeFirst.h"

namespace gpuc {

using namespace mlir;

/// The first two dimensions change places.
static Value swapFront(OpBuilder &builder, Location location, Value value) {
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(value.getType()).getRank()));
  std::swap(permutation[0], permutation[1]);
  return ir::TransposeOp::create(builder, location, value, permutation);
}

void putTimeFirst(ir::ScanOp scan) {
  OpBuilder builder(scan);
  Location location = scan.getLoc();
  auto inputs =
      llvm::map_to_vector(scan.getInputs(), [&](Value input) { return swapFront(builder, location, input); });
  auto built = ir::ScanOp::create(builder, location, inputs, scan.getInits(), scan.getCaptures(),
                                  TypeRange(scan.getOutputSlices()), scan.getTripCount(), scan.getReverse(),
                                  scan.getRecompute());
  built.setChunked(scan.getChunked());
  built.setParallel(scan.getParallel());
  built.getBody().takeBody(scan.getBody());
  SmallVector<Value> results(built.getFinals());
  for (Value output : built.getOutputs())
    results.push_back(swapFront(builder, location, output));
  scan->replaceAllUsesWith(results);
  scan.erase();
}

} // namespace gpuc
