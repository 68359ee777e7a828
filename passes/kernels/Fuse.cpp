//===- Fuse.cpp - Ops into kernels -------------------------------------------===//
//
// Contract: afterwards every op that a kernel computes stands in the region of a gpuc.fused, on CUDA
// attention too, by itself; what is left outside are library calls, reshapes, reads and assigns. Kernels form
// no cycle; what a kernel may hold is for the emitter to say (codegen/Codegen.h); the result depends on the
// order of ops alone.
//
// Every op begins as a kernel of its own (FuseClusters.h). Then, in block order, the kernel of an op takes in
// others, in three rounds; the region of a scan is a block of its own:
//
//   1. kernels of its operands whose values nobody else reads: they vanish, be it into a pointwise kernel or
//      into a reduction;
//   2. kernels of its operands over the same elements whose values others read too: these become results of
//      the larger kernel;
//   3. kernels that work on the same rows, reductions or not, where one kernel is faster by FuseCost.h: it
//      sweeps over a row while that is in the cache. They are those of its operands, and those that reduce
//      the same operand.
//
// At last, a result that is as cheap to compute as to load, or as to keep for the backward pass, is computed
// by its readers (RepeatResults.h).
//
// A kernel that yields what others read too waits for no sum over ranks that these do not wait for: the
// factor by which all gradients are scaled, of the count of rows, is there before most of their sums, and
// updates begin as their sums come.
//
// In this order a value for the backward pass is computed there, if that takes no more than what is kept
// anyway (the mask of a relu, from its result), and not kept from the forward pass. What is read through a
// broadcast would be computed once for each element: it stays outside, unless it is cheap and vanishes. So
// the powers in Adam's bias corrections are computed once.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/FuseClusters.h"
#include "passes/kernels/FuseCost.h"

#include "passes/Passes.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/Target.h"
#include "passes/codegen/Codegen.h"
#include "passes/kernels/CommandForms.h"
#include "passes/kernels/FuseSteps.h"
#include "passes/kernels/RepeatResults.h"

#include <tuple>

namespace gpuc {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether a value is read where the kernel of `reduction` computes it: of its own element, or, with one for
/// each row, along that row.
bool staysInRow(Value value, AccessPath path, Operation *reduction) {
  ArrayRef<int64_t> whole = ir::shapeOf(reduction->getOperand(0));
  if (ir::shapeOf(value) == whole)
    return path.moves == 0;
  if (ir::shapeOf(value) != ir::shapeOf(reduction->getResult(0)))
    return false;
  SmallVector<int64_t> folded = foldedDims(reduction), kept;
  for (int64_t dim = 0; dim < static_cast<int64_t>(whole.size()); ++dim)
    if (!llvm::is_contained(folded, dim))
      kept.push_back(dim);
  return path.moves == 0 || (path.moves == 1 && path.repeated && ir::shapeOf(path.repeated) == whole &&
                             path.repeated.getDims() == ArrayRef(kept));
}

/// Of a value that more ops read than this, not all are looked at for kernels beside one another; nor are
/// more of these tried.
constexpr unsigned kMostReaders = 256, kMostSiblings = 16;

/// Merges the clusters of one block.
class Fusion {
public:
  Fusion(FuseClusters &clusters, const TargetDescription &device) : clusters_(clusters), device_(device) {}

  void run() {
    mergeWhile(Round::Vanishing);
    mergeWhile(Round::Shared);
    mergeWhile(Round::Rows);
  }

private:
  enum class Round { Vanishing, Shared, Rows };

  void mergeWhile(Round round) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (Operation &op : clusters_.block()) {
        Cluster *cluster = clusters_.of(&op);
        if (!cluster)
          continue;
        for (Cluster *producer : clusters_.producersOf(&op))
          changed |= tryMerge(*producer, *cluster, round);
        if (round == Round::Rows && isReduction(&op))
          changed |= takeInSiblings(&op, *cluster);
      }
    }
  }

  /// Takes in kernels that reduce what `reduction` does, or something of the same rows that comes from there.
  bool takeInSiblings(Operation *reduction, Cluster &cluster) {
    llvm::SetVector<Cluster *> siblings;
    const ArrayRef<int64_t> shape = ir::shapeOf(reduction->getOperand(0));
    for (Value input : clusters_.inputsOf(cluster.ops))
      if (ir::shapeOf(input) == shape)
        for (Value value : comingWith(input))
          if (ir::shapeOf(value) == shape)
            addSiblings(value, cluster, siblings);
    for (Cluster *sibling : siblings)
      if (clusters_.comesFirst(*sibling, cluster) ? tryMerge(*sibling, cluster, Round::Rows)
                                                  : tryMerge(cluster, *sibling, Round::Rows))
        return true; // and `cluster` may be no more
    return false;
  }

  /// The value and, on a GPU, where a launch takes as long as a short sum, what the same kernel yields.
  SmallVector<Value> comingWith(Value value) const {
    Cluster *maker = device_.boundByMemory ? clusters_.of(value.getDefiningOp()) : nullptr;
    return maker ? clusters_.outputsOf(maker->ops) : SmallVector<Value>{value};
  }

  /// The kernels that reduce and read `input`, of its first readers.
  void addSiblings(Value input, Cluster &cluster, llvm::SetVector<Cluster *> &siblings) const {
    unsigned looks = 0;
    clusters_.forEachReader(input, [&](Operation *reader) {
      Cluster *other = clusters_.of(reader);
      if (other && other != &cluster && other->reduction() &&
          cluster.reductions + other->reductions <= kMostReductions)
        siblings.insert(other);
      return ++looks < kMostReaders && siblings.size() < kMostSiblings;
    });
  }

  /// Moves the ops of `producer` into `consumer` if it pays and may be.
  bool tryMerge(Cluster &producer, Cluster &consumer, Round round) {
    if (producer.ops.size() + consumer.ops.size() > kMaxKernelOps || clusters_.isStored(producer))
      return false;
    if (!isWanted(producer, consumer, round) || clusters_.isReachedOtherwise(producer, consumer) ||
        !canBeOneKernel(producer, consumer))
      return false;
    clusters_.merge(producer, consumer);
    return true;
  }

  bool isWanted(const Cluster &producer, const Cluster &consumer, Round round) {
    Pairs &unwanted = unwanted_[static_cast<unsigned>(round)];
    const Pair pair = pairOf(producer, consumer);
    if (unwanted.contains(pair))
      return false;
    const bool wanted =
        round == Round::Rows ? paysByRow(producer, consumer) : pays(producer, consumer, round);
    if (!wanted)
      unwanted.insert(pair);
    return wanted;
  }

  bool canBeOneKernel(const Cluster &producer, const Cluster &consumer) {
    const Pair pair = pairOf(producer, consumer);
    if (apart_.contains(pair))
      return false;
    const bool can = clusters_.canBeOneKernel(producer, consumer);
    if (!can)
      apart_.insert(pair);
    return can;
  }

  /// Two are asked for by each of their ops, round after round. Clusters only grow, and nobody's readers
  /// change meanwhile, so that of as many ops they are what they were.
  using Pair = std::tuple<const Cluster *, const Cluster *, unsigned, unsigned>;
  using Pairs = DenseSet<Pair>;
  static Pair pairOf(const Cluster &producer, const Cluster &consumer) {
    return {&producer, &consumer, static_cast<unsigned>(producer.ops.size()),
            static_cast<unsigned>(consumer.ops.size())};
  }

  bool pays(const Cluster &producer, const Cluster &consumer, Round round) const {
    bool moved = false, repeated = false;
    forEachReadOf(producer, consumer, [&](Value, AccessPath path) {
      moved |= path.moves > 0;
      repeated |= path.repeated != nullptr;
    });
    const bool vanishes = vanishesIn(producer, consumer);
    if (!vanishes && round == Round::Vanishing)
      return false;
    if (producer.root()) { // What follows a reduction reads its result where that is computed.
      if (consumer.root() || moved)
        return false;
    } else if (repeated && !isCheapToRepeat(producer.ops)) {
      return false;
    } else if (!vanishes && (moved || consumer.root())) {
      return false; // It is kept: read at another index, or by a reduction, it would be computed twice.
    }
    return vanishes || !holdsUp(producer, consumer);
  }

  /// Whether others who read what `a` makes would have to wait, in one kernel with `b`, for more than they
  /// need: another sum over ranks or, where it is a number, which takes as long to read as to compute, a
  /// later product. So no update of a weight waits for the norm of all gradients.
  bool holdsUp(const Cluster &a, const Cluster &b) const {
    if (a.lastSum != b.lastSum)
      return true;
    const SmallVector<Value> outputs = clusters_.outputsOf(a.ops);
    return a.lastProduct < b.lastProduct && llvm::all_of(outputs, isOneNumber) &&
           llvm::any_of(outputs, [&](Value value) { return isReadBefore(value, a, b); });
  }

  static bool isOneNumber(Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements() == 1;
  }

  /// Whether an op of neither kernel reads the value, and needs no product as late as `b` does.
  bool isReadBefore(Value value, const Cluster &a, const Cluster &b) const {
    return !clusters_.forEachReader(value, [&](Operation *reader) {
      const Cluster *other = clusters_.of(reader);
      return other == &a || other == &b || clusters_.lastProductOf(reader) >= b.lastProduct;
    });
  }

  /// Whether nobody else reads what the producer makes.
  bool vanishesIn(const Cluster &producer, const Cluster &consumer) const {
    unsigned reads = 0, here = 0;
    for (Operation *op : producer.ops)
      for (Value result : op->getResults())
        reads += clusters_.readsOf(result);
    for (const Cluster *reader : {&producer, &consumer})
      forEachReadOf(producer, *reader, [&](Value, AccessPath) { ++here; });
    return reads == here;
  }

  /// Calls `visit` for each read of what `producer` makes by an op of `reader`.
  void forEachReadOf(const Cluster &producer, const Cluster &reader,
                     llvm::function_ref<void(Value, AccessPath)> visit) const {
    for (Operation *op : reader.ops)
      clusters_.forEachRead(op, [&](Value value, AccessPath path) {
        if (Operation *maker = value.getDefiningOp(); maker && clusters_.of(maker) == &producer)
          visit(value, path);
      });
  }

  /// Whether both work on the same rows, and one kernel does it faster.
  bool paysByRow(const Cluster &a, const Cluster &b) const {
    Operation *reduction = a.reduction() ? a.reduction() : b.reduction();
    return reduction && readsInRow(a, b, reduction) && readsInRow(b, a, reduction) &&
           (vanishesIn(a, b) || !holdsUp(a, b)) &&
           nanoseconds(clusters_.together(a, b)) < nanosecondsOf(a) + nanosecondsOf(b);
  }

  /// Whether `reader` reads what `cluster` computes in the row of `reduction` alone.
  bool readsInRow(const Cluster &reader, const Cluster &cluster, Operation *reduction) const {
    bool inRow = true;
    forEachReadOf(cluster, reader,
                  [&](Value value, AccessPath path) { inRow &= staysInRow(value, path, reduction); });
    return inRow;
  }

  double nanoseconds(ArrayRef<Operation *> ops) const {
    return kernelNanoseconds({ops, clusters_.inputsOf(ops).getArrayRef(), clusters_.outputsOf(ops)}, device_);
  }

  double nanosecondsOf(const Cluster &cluster) const {
    auto &[ops, price] = prices_[&cluster];
    if (ops != cluster.ops.size()) {
      ops = cluster.ops.size();
      price = nanoseconds(cluster.ops);
    }
    return price;
  }

  FuseClusters &clusters_;
  const TargetDescription &device_;
  mutable DenseMap<const Cluster *, std::pair<size_t, double>> prices_; ///< Of so many ops.
  Pairs unwanted_[3]; ///< By round, those that would be no faster as one kernel.
  Pairs apart_;       ///< Those that cannot be one.
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class FusePass : public impl::FusePassBase<FusePass> {
public:
  using FusePassBase::FusePassBase;
  FusePass(FusePassOptions options, std::function<void(func::FuncOp)> onFused)
      : FusePassBase(std::move(options)), onFused_(std::move(onFused)) {}

private:
  void runOnOperation() override {
    FailureOr<Target> parsed = Target::parse(target, getOperation());
    if (failed(parsed))
      return signalPassFailure();
    isCuda_ = parsed->isCuda();
    device_ = describe(*parsed);
    KernelNames names;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      if (failed(fuse(function.getBody().front(), names)))
        return signalPassFailure();
      if (onFused_)
        onFused_(function);
    }
    getOperation()->setAttr(kFusedForAttr, StringAttr::get(&getContext(), target));
  }

  /// The ops of a block, and those of the loops in it.
  LogicalResult fuse(Block &block, KernelNames &names) {
    if (enable) {
      multiplyOuterProducts(block);
      splitLongSums(block, device_);
      if (isCuda_) {
        takeMomentsInOneSweep(block);
        factorSums(block);
        splitLongColumns(block, device_);
      }
    }
    FuseClusters clusters(block, enable, /*joins=*/!isCuda_);
    if (failed(clusters.make()))
      return failure();
    if (enable) {
      Fusion(clusters, device_).run();
      repeatResults(clusters, device_);
    }
    if (failed(clusters.build(names)))
      return failure();
    if (isCuda_)
      buildAttentionKernels(block, names);
    if (failed(checkLeft(block)))
      return failure();
    for (auto scan : block.getOps<ir::ScanOp>())
      if (failed(fuse(scan.getBlock(), names)))
        return failure();
    return success();
  }

  /// Whether what stands outside of kernels needs none. Composites that were to be kept may be anyone's.
  static LogicalResult checkLeft(Block &block) {
    for (Operation &op : block.without_terminator())
      if (!commandFormOf(&op) && !isa<ir::CompositeOpInterface>(op))
        return op.emitOpError("has no kernel on any target");
    return success();
  }

  std::function<void(func::FuncOp)> onFused_;
  bool isCuda_ = false;
  TargetDescription device_ = kHostDescription;
};

} // namespace

std::unique_ptr<Pass> createFusePass(FusePassOptions options, std::function<void(func::FuncOp)> onFused) {
  return std::make_unique<FusePass>(std::move(options), std::move(onFused));
}

} // namespace gpuc
