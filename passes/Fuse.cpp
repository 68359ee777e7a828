//===- Fuse.cpp - Ops into kernels -------------------------------------------===//
//
// Contract: afterwards every op that a kernel computes stands in the region of a gpuc.fused; what is left
// outside are library calls, reshapes, reads and assigns. Kernels form no cycle; what a kernel may hold is
// for the emitter to say (codegen/Codegen.h); the result depends on the order of ops alone.
//
// Ops that only say where to read or what constant to use (constant, iota, broadcast, transpose …), that
// read 16 bits as f32, or that multiply two vectors into a matrix, are copied into each kernel that reads
// them. Every other op begins as a kernel of its own. Then, in block order, the kernel of an op takes in the
// kernels of its operands, in three rounds; the region of a scan is a block of its own:
//
//   1. kernels whose values nobody else reads: they vanish, be it into a pointwise kernel or into a
//   reduction;
//   2. kernels over the same elements whose values others read too: these become results of the larger
//   kernel;
//   3. kernels that work on the same rows, reductions or not, where one kernel is faster by FuseCost.h: it
//   sweeps over a row while that is in the cache.
//
// In this order a value for the backward pass is computed there, if that takes no more than what is kept
// anyway (the mask of a relu, from its result), and not kept from the forward pass. What is read through a
// broadcast would be computed once for each element: it stays outside, unless it is cheap and vanishes. So
// the powers in Adam's bias corrections are computed once.
//
//===----------------------------------------------------------------------===//

#include "passes/FuseCost.h"

#include "dialects/gpuc/ScanParts.h"
#include "dialects/gpuc/Windows.h"
#include "passes/AttentionViews.h"
#include "passes/FusedKernel.h"
#include "passes/KernelOrder.h"
#include "passes/OuterProducts.h"
#include "passes/Passes.h"
#include "passes/codegen/Codegen.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "llvm/ADT/SetVector.h"

namespace gpuc {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

bool isKernelOp(Operation *op) { return isInlinable(op) || isRoot(op); }

/// Whether the op reads 16-bit numbers as f32. Stored, they would take twice the bytes of what they came
/// from.
bool isWideningCast(Operation *op) {
  auto cast = dyn_cast<ir::CastOp>(op);
  if (!cast)
    return false;
  Type from = getElementTypeOrSelf(cast.getOperand().getType());
  return (from.isF16() || from.isBF16()) && getElementTypeOrSelf(cast.getType()).isF32();
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// Ops that become one kernel, in block order.
struct Cluster {
  SmallVector<Operation *> ops;
  unsigned node = 0; ///< In KernelOrder: the position of the op that it began as.

  Operation *root() const {
    auto found = llvm::find_if(ops, isRoot);
    return found == ops.end() ? nullptr : *found;
  }
};

/// How a reader sees a value: at its own index, or through copied ops that move or repeat its elements.
struct Way {
  unsigned moves = 0;            ///< Copied ops that move or repeat elements.
  ir::BroadcastOp repeated = {}; ///< The last of them that is one.

  Way then(Operation *copied) const {
    auto broadcast = dyn_cast<ir::BroadcastOp>(copied);
    return {moves + !copied->hasTrait<ir::Pointwise>(), broadcast ? broadcast : repeated};
  }
};

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Whether a value is read where the kernel of `reduction` computes it: of its own element, or, with one for
/// each row, along that row.
bool staysInRow(Value value, Way way, Operation *reduction) {
  ArrayRef<int64_t> whole = shapeOf(reduction->getOperand(0));
  if (shapeOf(value) == whole)
    return way.moves == 0;
  if (shapeOf(value) != shapeOf(reduction->getResult(0)))
    return false;
  SmallVector<int64_t> folded = foldedDims(reduction), kept;
  for (int64_t dim = 0; dim < static_cast<int64_t>(whole.size()); ++dim)
    if (!llvm::is_contained(folded, dim))
      kept.push_back(dim);
  return way.moves == 0 || (way.moves == 1 && way.repeated && shapeOf(way.repeated) == whole &&
                            way.repeated.getDims() == ArrayRef(kept));
}

/// Groups the ops of one block into clusters.
class Clustering {
public:
  Clustering(Block &block, bool merge, const FuseCost &cost) : block_(block), merge_(merge), cost_(cost) {}

  LogicalResult run() {
    if (merge_)
      keepAttentionViews();
    eraseDead();
    separateCopies();
    if (failed(makeClusters()))
      return failure();
    if (merge_) {
      mergeWhile(Round::Vanishing);
      mergeWhile(Round::Shared);
      mergeWhile(Round::Rows);
    }
    return success();
  }

  /// Puts a gpuc.fused in the place of each cluster.
  LogicalResult build(KernelNames &names) {
    llvm::SetVector<Cluster *> ordered;
    for (Operation &op : block_)
      if (Cluster *cluster = clusterOf(&op))
        ordered.insert(cluster);
    for (Cluster *cluster : ordered) {
      FusedKernel kernel = kernelOf(cluster->ops);
      OpBuilder builder(block_.getParentOp());
      builder.setInsertionPointAfter(cluster->ops.back());
      kernel.build(builder, names.nameFor(cluster->ops));
    }
    eraseDead(); // What the kernels replace.
    // A result that is read between the first and the last op of its kernel is now read before it is
    // computed.
    if (!sortTopologically(&block_))
      return block_.getParentOp()->emitOpError("has kernels that wait for one another");
    return success();
  }

private:
  Cluster *clusterOf(Operation *op) const { return clusters_.lookup(op); }

  /// Ops that are copied into each kernel that reads them.
  bool isCopied(Operation *op) const {
    if (clusterOf(op) || views_.contains(op))
      return false;
    return isa<ir::ConstantOp>(op) ||
           (merge_ && (isa<ir::IotaOp, ir::BroadcastOp, ir::TransposeOp, ir::SliceOp, ir::ReverseOp>(op) ||
                       isWideningCast(op) || isOuterProduct(op)));
  }

  /// Gives attention transposes, slices and reshapes of its own, which stay what they are: it reads and
  /// writes through strides.
  void keepAttentionViews() {
    SmallVector<Operation *> attentions;
    for (Operation &op : block_)
      if (isAttention(&op))
        attentions.push_back(&op);
    for (Operation *op : attentions)
      for (OpOperand &operand : op->getOpOperands()) {
        if (!isReadStrided(operand))
          continue;
        Value value = operand.get();
        StridedView view = viewOf(value);
        if (view.base == value ||
            !isReadable(cast<RankedTensorType>(value.getType()).getShape(), view.strides))
          continue;
        OpBuilder builder(op);
        operand.set(copyView(builder, value, view.base));
        eraseUnread(value.getDefiningOp());
      }
    for (Operation *op : attentions)
      for (OpResult result : op->getResults())
        if (ir::TransposeOp transpose = transposeOfResult(result))
          views_.insert(transpose);
  }

  Value copyView(OpBuilder &builder, Value value, Value base) {
    Operation *op = value.getDefiningOp();
    if (value == base || !isa<ir::TransposeOp, ir::SliceOp, ir::ReshapeOp>(op))
      return value;
    Value operand = copyView(builder, op->getOperand(0), base);
    Operation *copy = builder.clone(*op);
    copy->setOperand(0, operand);
    views_.insert(copy);
    return copy->getResult(0);
  }

  static void eraseUnread(Operation *op) {
    while (op && op->use_empty() && isa<ir::TransposeOp, ir::SliceOp, ir::ReshapeOp>(op)) {
      Operation *from = op->getOperand(0).getDefiningOp();
      op->erase();
      op = from;
    }
  }

  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block_)))
      if (isKernelOp(&op) && op.use_empty())
        op.erase();
  }

  /// Gives the readers that are no kernels (library calls, assigns, the return) a copy of their own of what
  /// is copied into kernels, so that it can be told apart.
  void separateCopies() {
    for (Operation &op : llvm::make_early_inc_range(block_)) {
      if (!isCopied(&op))
        continue;
      auto outside = [&](OpOperand &use) {
        Operation *reader = use.getOwner();
        return (!isKernelOp(reader) || views_.contains(reader)) && !ir::isSplatInit(use);
      };
      if (llvm::none_of(op.getUses(), outside))
        continue;
      Operation *copy = OpBuilder(&op).clone(op);
      op.getResult(0).replaceUsesWithIf(copy->getResult(0), outside);
      materialized_.insert(copy);
    }
  }

  LogicalResult makeClusters() {
    for (auto [position, op] : llvm::enumerate(block_)) {
      positions_[&op] = position;
      ops_.push_back(&op);
    }
    order_ = KernelOrder(ops_.size());
    for (Operation &op : block_) {
      if (!isKernelOp(&op) || views_.contains(&op) || (isCopied(&op) && !materialized_.contains(&op)))
        continue;
      storage_.push_back(std::make_unique<Cluster>());
      storage_.back()->ops.push_back(&op);
      storage_.back()->node = positions_.lookup(&op);
      clusters_[&op] = storage_.back().get();
    }
    for (auto &cluster : storage_)
      if (failed(checkKernel(kernelOf(cluster->ops).body())))
        return cluster->ops.front()->emitOpError("cannot be compiled into a kernel");
    return success();
  }

  /// Calls `visit` for each op, copied ones aside, that reads `value`.
  void forEachReader(Value value, function_ref<void(Operation *, Way)> visit, Way way = {}) const {
    for (Operation *user : value.getUsers()) {
      if (!isCopied(user))
        visit(user, way);
      else
        forEachReader(user->getResult(0), visit, way.then(user));
    }
  }

  /// The results that ops outside of `ops` read, and those that a kernel yields in any case.
  SmallVector<Value> outputsOf(ArrayRef<Operation *> ops) const {
    SmallVector<Value> outputs;
    for (Operation *op : ops)
      for (Value result : op->getResults()) {
        bool isRead = yieldsAllResults(op);
        forEachReader(result, [&](Operation *reader, Way) { isRead |= !llvm::is_contained(ops, reader); });
        if (isRead)
          outputs.push_back(result);
      }
    return outputs;
  }

  /// What these ops read from outside, copied ops looked through.
  llvm::SetVector<Value> inputsOf(ArrayRef<Operation *> ops) const {
    llvm::SetVector<Value> inputs;
    auto add = [&](auto &self, Value value) -> void {
      Operation *op = value.getDefiningOp();
      if (op && isCopied(op))
        llvm::for_each(op->getOperands(), [&](Value operand) { self(self, operand); });
      else if (!op || !llvm::is_contained(ops, op))
        inputs.insert(value);
    };
    for (Operation *op : ops)
      for (Value operand : op->getOperands())
        add(add, operand);
    return inputs;
  }

  FusedKernel kernelOf(ArrayRef<Operation *> ops) const {
    return FusedKernel(ops, outputsOf(ops), [this](Operation *op) { return isCopied(op); });
  }

  //===--------------------------------------------------------------------===//
  // Merging
  //===--------------------------------------------------------------------===//

  enum class Round { Vanishing, Shared, Rows };

  void mergeWhile(Round round) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (Operation &op : block_)
        if (Cluster *cluster = clusterOf(&op))
          changed |= takeInProducers(&op, *cluster, round);
    }
  }

  bool takeInProducers(Operation *op, Cluster &consumer, Round round) {
    llvm::SetVector<Cluster *> producers;
    auto collect = [&](auto &self, Operation *reader) -> void {
      for (Value operand : reader->getOperands())
        if (Operation *producer = operand.getDefiningOp()) {
          if (isCopied(producer))
            self(self, producer);
          else if (Cluster *cluster = clusterOf(producer); cluster && cluster != &consumer)
            producers.insert(cluster);
        }
    };
    collect(collect, op);
    bool changed = false;
    for (Cluster *producer : producers)
      changed |= tryMerge(*producer, consumer, round);
    return changed;
  }

  /// Moves the ops of `producer` into `consumer` if it pays and may be.
  bool tryMerge(Cluster &producer, Cluster &consumer, Round round) {
    if (producer.ops.size() + consumer.ops.size() > kMaxKernelOps)
      return false;
    SmallVector<Operation *> merged(producer.ops);
    llvm::append_range(merged, consumer.ops);
    llvm::sort(merged,
               [&](Operation *a, Operation *b) { return positions_.lookup(a) < positions_.lookup(b); });
    bool wanted =
        round == Round::Rows ? paysByRow(producer, consumer, merged) : pays(producer, consumer, round);
    if (!wanted || isReachedOtherwise(producer, consumer) || failed(checkKernel(kernelOf(merged).body())))
      return false;
    order_.merge(producer.node, consumer.node);
    for (Operation *op : producer.ops)
      clusters_[op] = &consumer;
    producer.ops.clear();
    consumer.ops = std::move(merged);
    return true;
  }

  bool pays(const Cluster &producer, const Cluster &consumer, Round round) const {
    bool vanishes = true, moved = false, repeated = false;
    for (Operation *op : producer.ops)
      for (Value result : op->getResults())
        forEachReader(result, [&](Operation *reader, Way here) {
          Cluster *cluster = clusterOf(reader);
          vanishes &= cluster == &producer || cluster == &consumer;
          if (cluster == &consumer) {
            moved |= here.moves > 0;
            repeated |= here.repeated != nullptr;
          }
        });
    if (!vanishes && round == Round::Vanishing)
      return false;
    if (producer.root()) // What follows a reduction reads its result where that is computed.
      return !consumer.root() && !moved;
    if (repeated && !isCheapToRepeat(producer.ops))
      return false;
    // A value that is kept, and read at another index or by a reduction, would be computed twice.
    return vanishes || (!moved && !consumer.root());
  }

  /// Whether both work on the same rows, and one kernel does it faster.
  bool paysByRow(const Cluster &producer, const Cluster &consumer, ArrayRef<Operation *> merged) const {
    auto reduction = llvm::find_if(merged, isReduction);
    if (reduction == merged.end())
      return false;
    bool inRow = true;
    for (Operation *op : producer.ops)
      for (Value result : op->getResults())
        forEachReader(result, [&](Operation *reader, Way way) {
          if (clusterOf(reader) == &consumer)
            inRow &= staysInRow(result, way, *reduction);
        });
    return inRow && nanoseconds(merged) < nanoseconds(producer.ops) + nanoseconds(consumer.ops);
  }

  double nanoseconds(ArrayRef<Operation *> ops) const {
    return cost_.nanoseconds({ops, inputsOf(ops).getArrayRef(), outputsOf(ops)});
  }

  /// Whether a way from `producer` to `consumer` leads through other kernels or ops: merged, they would wait
  /// for themselves.
  bool isReachedOtherwise(const Cluster &producer, const Cluster &consumer) {
    auto readers = [&](unsigned node, llvm::function_ref<void(unsigned)> visit) {
      Operation *op = ops_[node];
      Cluster *cluster = clusterOf(op);
      // A kernel gives nothing before it has everything.
      for (Operation *member : cluster ? ArrayRef(cluster->ops) : ArrayRef(op))
        for (Value result : member->getResults())
          forEachReader(result, [&](Operation *reader, Way) {
            if (unsigned other = nodeOf(reader); other != node)
              visit(other);
          });
    };
    return order_.isReachedOtherwise(nodeOf(producer.ops.front()), nodeOf(consumer.ops.front()), readers);
  }

  /// The kernel of an op, or else the op itself, in order_.
  unsigned nodeOf(Operation *op) const {
    Cluster *cluster = clusterOf(op);
    return cluster ? cluster->node : positions_.lookup(block_.findAncestorOpInBlock(*op));
  }

  Block &block_;
  bool merge_;
  const FuseCost &cost_;
  SmallVector<Operation *> ops_;
  llvm::DenseMap<Operation *, unsigned> positions_; ///< In ops_.
  KernelOrder order_{0};
  llvm::DenseMap<Operation *, Cluster *> clusters_;
  SmallVector<std::unique_ptr<Cluster>> storage_;
  llvm::SmallPtrSet<Operation *, 8> materialized_;
  llvm::SmallPtrSet<Operation *, 8> views_; ///< What attention sees through strides.
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class FusePass : public impl::FusePassBase<FusePass> {
  using FusePassBase::FusePassBase;

  void runOnOperation() override {
    std::optional<plan::TargetKind> kind = plan::symbolizeTargetKind(StringRef(target).split(':').first);
    if (!kind) {
      getOperation().emitError("unknown target '") << target << "': host or cuda";
      return signalPassFailure();
    }
    FuseCost cost(describe(*kind));
    KernelNames names;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      if (failed(fuse(function.getBody().front(), cost, names)))
        return signalPassFailure();
    }
  }

  /// The ops of a block, and those of the loops in it.
  LogicalResult fuse(Block &block, const FuseCost &cost, KernelNames &names) {
    if (enable)
      multiplyOuterProducts(block);
    Clustering clustering(block, enable, cost);
    if (failed(clustering.run()) || failed(clustering.build(names)) || failed(checkLeft(block)))
      return failure();
    for (auto scan : block.getOps<ir::ScanOp>())
      if (failed(fuse(scan.getBlock(), cost, names)))
        return failure();
    return success();
  }

  /// Whether the op only says where attention reads or writes.
  static bool isView(Operation *op) {
    if (isAttentionView(op))
      return true;
    auto result = isa<ir::TransposeOp>(op) ? dyn_cast<OpResult>(op->getOperand(0)) : OpResult();
    return result && transposeOfResult(result) == op;
  }

  /// Whether what stands outside of kernels needs none: it is a library's, moves nothing, or is state.
  static LogicalResult checkLeft(Block &block) {
    for (Operation &op : block.without_terminator())
      if (!ir::isConvolution(&op) && !isView(&op) &&
          !(isa<ir::ConstantOp>(op) && llvm::all_of(op.getUses(), ir::isSplatInit)) &&
          !isa<ir::FusedOp, ir::MatmulOp, ir::ReshapeOp, ir::ScanOp, ir::ReadOp, ir::AssignOp,
               ir::CompositeOpInterface>(op))
        return op.emitOpError("has no kernel on any target");
    return success();
  }
};

} // namespace
} // namespace gpuc
