//===- BlockModel.cpp - A block of a step as plain data --------------------------===//

#include "passes/recompute/BlockModel.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc {

/// Of an op that becomes a command, or of a loop of them.
static double nanosecondsOf(Operation *op, const CostModel &cost) {
  auto scan = dyn_cast<ir::ScanOp>(op);
  if (!scan)
    return cost.nanosecondsOf(workOf(op));
  double nanoseconds = 0;
  for (Operation &inner : scan.getBlock())
    if (becomesCommand(&inner))
      nanoseconds += nanosecondsOf(&inner, cost);
  return scan.getTripCount() * nanoseconds;
}

/// The ops of the block as they come if all that can be dropped is.
static std::vector<Operation *> inOrderOfCopies(const ForwardPass &forward) {
  const std::vector<Operation *> early = forward.earlyReaders([&](Value value) {
    return llvm::any_of(bytesOf(value), [&](Value bytes) { return forward.computes(bytes); });
  });
  const DenseSet<Operation *> isEarly(early.begin(), early.end());
  DenseMap<Operation *, SmallVector<Operation *, 1>> before; // which are put before what
  for (Operation *op : early)
    before[firstReader(op)].push_back(op);
  std::vector<Operation *> order;
  auto put = [&](auto &self, Operation *op) -> void {
    for (Operation *first : before.lookup(op))
      self(self, first);
    order.push_back(op);
  };
  for (Operation &op : forward.block())
    if (!isEarly.contains(&op))
      put(put, &op);
  return order;
}

namespace {

class BlockModel {
public:
  BlockModel(const ForwardPass &forward, const CostModel &cost) : forward_(forward) {
    for (Operation *op : forward.ops())
      for (Value result : op->getResults()) {
        add(result, ir::sizeInBytes(result.getType()));
        bytesAgain_.push_back(bytes_.back() / (forward.isOfChunks(result) ? tripsOf(op) : 1));
      }
    for (Operation *op : inOrderOfCopies(forward))
      if (becomesCommand(op))
        add(op, nanosecondsOf(op, cost));
  }

  BlockGraph graph() && { return BlockGraph(std::move(ops_), std::move(bytes_), std::move(bytesAgain_)); }

private:
  void add(Value value, int64_t bytes) {
    numbers_[value] = bytes_.size();
    bytes_.push_back(bytes);
  }

  static int64_t tripsOf(Operation *loop) { return cast<ir::ScanOp>(loop).getTripCount(); }

  /// What a loop over chunks stacks for others over the same chunks can be computed again without what else
  /// it gives: as if two loops did that.
  void add(Operation *op, double nanoseconds) {
    auto isOfChunks = [&](Value result) { return forward_.isOfChunks(result); };
    const SmallVector<Value> all(op->getResults());
    const SmallVector<Value> ofChunks(llvm::make_filter_range(all, isOfChunks));
    if (ofChunks.empty() || ofChunks.size() == all.size())
      return add(op, all, nanoseconds);
    add(op, SmallVector<Value>(llvm::make_filter_range(all, std::not_fn(isOfChunks))), nanoseconds);
    add(op, ofChunks, nanoseconds);
  }

  void add(Operation *op, ArrayRef<Value> results, double nanoseconds) {
    BlockGraph::Op &made = ops_.emplace_back();
    made.nanoseconds = nanoseconds;
    made.backward = forward_.isBackward(op);
    made.mayOverwrite = isa<ir::FusedOp>(op);
    for (Value operand : op->getOperands())
      for (Value read : bytesOf(operand))
        if (auto found = numbers_.find(read);
            found != numbers_.end() && !llvm::is_contained(made.reads, found->second))
          made.reads.push_back(found->second);
    for (Value result : results) {
      if (!numbers_.contains(result))
        add(result, isState(result) ? 0 : ir::sizeInBytes(result.getType()));
      made.writes.push_back(numbers_[result]);
    }
  }

  /// What becomes of a variable, or goes to the next iteration, lies where that does.
  static bool isState(Value value) {
    return llvm::any_of(value.getUsers(), [](Operation *user) {
      return isa<ir::AssignOp>(user) || user->hasTrait<OpTrait::IsTerminator>();
    });
  }

  const ForwardPass &forward_;
  DenseMap<Value, unsigned> numbers_;
  std::vector<BlockGraph::Op> ops_;
  std::vector<int64_t> bytes_, bytesAgain_;
};

} // namespace

BlockGraph modelOf(const ForwardPass &forward, const CostModel &cost) {
  return BlockModel(forward, cost).graph().ordered();
}

} // namespace gpuc
