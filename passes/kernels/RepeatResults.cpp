//===- RepeatResults.cpp - Results that their readers compute themselves ----===//

#include "passes/kernels/RepeatResults.h"

#include "passes/base/Locations.h"
#include "passes/codegen/Codegen.h"
#include "passes/kernels/FuseCost.h"

using namespace mlir;

namespace gpuc {
namespace {

bool isLate(const Cluster *cluster) {
  return llvm::any_of(cluster->ops, [](Operation *op) { return isBackward(op->getLoc()); });
}

/// A value under the name of another shape is the same bytes.
Value bytesOf(Value value) {
  while (auto reshape = value.getDefiningOp<ir::ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

/// Clusters that may compute a value instead of reading it, and whether anyone else reads it.
struct Readers {
  llvm::SetVector<Cluster *> all, late; ///< `late`: those of the backward pass.
  bool others = false, lateOthers = false;
};

class Repeating {
public:
  Repeating(FuseClusters &clusters, const TargetDescription &device)
      : clusters_(clusters), device_(device), isPriced_(residualBytes() > device.residentBytes),
        mayBeCostly_(device.keptBytes == 0), heights_(clusters.heights()) {}

  void run() {
    llvm::SetVector<Cluster *> merged;
    for (Operation &op : clusters_.block())
      if (Cluster *cluster = clusters_.of(&op))
        merged.insert(cluster);
    // What one reader has taken in may be what it computes the next value from.
    for (int rounds = device_.boundByMemory ? 2 : 1; rounds > 0; --rounds)
      for (Cluster *cluster : merged)
        for (Value result : clusters_.outputsOf(cluster->ops))
          repeat(*cluster, result);
  }

private:
  void repeat(Cluster &cluster, Value result) {
    Readers readers = readersOf(result, cluster);
    bool waits = !isLate(&cluster) && (!readers.late.empty() || readers.lateOthers);
    const bool mayBeCostly = waits || mayBeCostly_;
    SmallVector<Operation *> ops = ownOps(result, cluster, mayBeCostly);
    if (ops.empty() || ops.size() > kMostRepeatedOps || (!mayBeCostly && !isCheapToRepeat(ops)))
      return;
    if (!readers.others && pays(cluster, result, ops, readers.all, /*vanishes=*/true))
      compute(cluster, result, ops, readers.all);
    else if (waits && !readers.lateOthers && pays(cluster, result, ops, readers.late, /*vanishes=*/false))
      compute(cluster, result, ops, readers.late);
    else if (waits && !device_.boundByMemory && writeAgain(cluster, result, ops, readers.late))
      return;
    else if (waits && device_.boundByMemory)
      for (Cluster *reader : readers.late)
        computeBeside(cluster, result, ops, *reader);
  }

  /// Lets `reader` compute what is there for others anyway, if it has what that takes.
  void computeBeside(Cluster &cluster, Value result, ArrayRef<Operation *> ops, Cluster &reader) {
    llvm::SetVector<Cluster *> alone;
    alone.insert(&reader);
    if (llvm::all_of(clusters_.inputsOf(ops), [&](Value value) { return isThereLate(value); }) &&
        pays(cluster, result, ops, alone, /*vanishes=*/false, /*waits=*/true))
      compute(cluster, result, ops, alone);
  }

  //===--------------------------------------------------------------------===//
  // Written again
  //===--------------------------------------------------------------------===//

  /// Has one kernel of the backward pass compute the result and write it again for those there that cannot
  /// compute it themselves, and the others of `late` compute it, too; whether it does.
  bool writeAgain(Cluster &cluster, Value result, ArrayRef<Operation *> ops,
                  const llvm::SetVector<Cluster *> &late) {
    SmallVector<Operation *> waiting;
    forEachLateReader(result, [&](Operation *reader) {
      if (!late.contains(clusters_.of(reader)))
        waiting.push_back(reader);
    });
    auto isBehind = [&](Cluster *writer) {
      return llvm::all_of(waiting, [&](Operation *op) { return heightOf(op) < heights_[writer->node]; }) &&
             llvm::all_of(clusters_.inputsOf(ops), [&](Value value) {
               Operation *op = value.getDefiningOp();
               return !op || op->getBlock() != &clusters_.block() || heightOf(op) > heights_[writer->node];
             });
    };
    for (Cluster *writer : writersOf(result, ops, late)) {
      if (!isBehind(writer) || !clusters_.canAlsoYield(*writer, ops, result))
        continue;
      llvm::SetVector<Cluster *> computing = late;
      computing.insert(writer);
      if (!pays(cluster, result, ops, computing, /*vanishes=*/false, /*waits=*/false, writer))
        continue;
      for (Cluster *reader : computing) {
        Value copy = clusters_.repeatIn(*reader, result, ops);
        if (reader == writer)
          clusters_.writeAgain(*writer, result, copy, [&](Operation *op) {
            return isLateOp(op) && !computing.contains(clusters_.of(op));
          });
      }
      clusters_.shrink(cluster);
      return true;
    }
    return false;
  }

  /// Kernels of the backward pass that may write the result again, the first to run first: those that would
  /// compute it, and those that read what it is computed from, element by element.
  SmallVector<Cluster *> writersOf(Value result, ArrayRef<Operation *> ops,
                                   const llvm::SetVector<Cluster *> &late) const {
    llvm::SetVector<Cluster *> writers = late;
    for (Value value : clusters_.inputsOf(ops))
      if (ir::shapeOf(value) == ir::shapeOf(result))
        for (Operation *user : value.getUsers())
          if (Cluster *reader = clusters_.of(user); reader && isLate(reader))
            writers.insert(reader);
    SmallVector<Cluster *> sorted = writers.takeVector();
    llvm::sort(sorted, [&](Cluster *a, Cluster *b) {
      return std::pair(heights_[b->node], a->node) < std::pair(heights_[a->node], b->node);
    });
    return sorted;
  }

  /// Calls `visit` for each op of the backward pass that reads `value`, be it by a copied op or under another
  /// shape.
  void forEachLateReader(Value value, function_ref<void(Operation *)> visit) const {
    for (Operation *user : value.getUsers())
      if (clusters_.isCopied(user) || isa<ir::ReshapeOp>(user))
        forEachLateReader(user->getResult(0), visit);
      else if (isLateOp(user))
        visit(user);
  }

  unsigned heightOf(Operation *op) const { return heights_[clusters_.nodeOf(op)]; }

  void compute(Cluster &cluster, Value result, ArrayRef<Operation *> ops,
               const llvm::SetVector<Cluster *> &readers) {
    for (Cluster *reader : readers)
      clusters_.repeatIn(*reader, result, ops);
    clusters_.shrink(cluster);
  }

  //===--------------------------------------------------------------------===//
  // Who reads, and what is computed
  //===--------------------------------------------------------------------===//

  /// A reader that may compute it reads each element at its own index.
  Readers readersOf(Value value, const Cluster &cluster) const {
    Readers readers;
    addReaders(value, cluster, readers);
    return readers;
  }

  void addReaders(Value value, const Cluster &cluster, Readers &readers) const {
    for (Operation *user : value.getUsers()) {
      if (device_.boundByMemory && clusters_.isCopied(user) && isa<ir::CastOp>(user)) {
        addReaders(user->getResult(0), cluster, readers); // each has a copy of the cast
        continue;
      }
      Cluster *reader = clusters_.of(user);
      if (reader == &cluster)
        continue;
      bool late = isReadLateBy(user);
      if (!reader || !mayCompute(*reader, value)) {
        readers.others = true;
        readers.lateOthers |= late;
        continue;
      }
      readers.all.insert(reader);
      if (late)
        readers.late.insert(reader);
    }
  }

  /// Whether the cluster reads each element of `value` once, at its own index: what it folds or pads, too,
  /// but not what its windows or gathers are made of.
  static bool mayCompute(const Cluster &reader, Value value) {
    Operation *root = reader.root();
    if (!root || reader.reduction() || isa<ir::PadOp>(root))
      return true;
    if (ir::shapeOf(root->getResult(0)) != ir::shapeOf(value))
      return false;
    llvm::SmallPtrSet<Operation *, 16> fed;
    for (Operation *op : reader.ops)
      if (llvm::any_of(op->getOperands(), [&](Value operand) {
            return operand == value || fed.contains(operand.getDefiningOp());
          }))
        fed.insert(op);
    return !fed.contains(root);
  }

  /// Whether the backward pass reads what `user` reads: itself, or by a copied op or another shape.
  bool isReadLateBy(Operation *user) const {
    if (clusters_.isCopied(user) || isa<ir::ReshapeOp>(user))
      return isReadLate(user->getResult(0));
    return isLateOp(user);
  }
  bool isReadLate(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return isReadLateBy(user); });
  }

  /// What waits for the backward pass, of all that the block computes before it.
  int64_t residualBytes() const {
    int64_t bytes = 0;
    for (Operation &op : clusters_.block())
      if (!isa<ir::ReshapeOp>(op) && !clusters_.isCopied(&op) && !isLateOp(&op))
        for (Value result : op.getResults())
          if (isReadLate(result))
            bytes += ir::sizeInBytes(result.getType());
    return bytes;
  }

  bool isLateOp(Operation *op) const {
    Cluster *cluster = clusters_.of(op);
    return cluster ? isLate(cluster) : isBackward(op->getLoc());
  }

  /// Whether the bytes of the value are there in the backward pass whoever reads them: variables, inputs, and
  /// what it reads anyway.
  bool isThereLate(Value value) const {
    Value bytes = bytesOf(value);
    Operation *op = bytes.getDefiningOp();
    return !op || op->getBlock() != &clusters_.block() || isa<ir::ReadOp, ir::ConstantOp>(op) ||
           isReadLate(bytes);
  }

  /// The ops of the cluster by which it computes `value` from what it reads and from what it yields anyway,
  /// or, if none of them may be `costly`, from what is; in block order.
  SmallVector<Operation *> ownOps(Value value, const Cluster &cluster, bool costly) const {
    SmallVector<Value> yielded = clusters_.outputsOf(cluster.ops);
    llvm::SetVector<Operation *> found;
    llvm::SmallPtrSet<Operation *, 16> seen;
    auto visit = [&](auto &self, Value wanted) -> void {
      Operation *op = wanted.getDefiningOp();
      if (!seen.insert(op).second || !op || clusters_.of(op) != &cluster ||
          (wanted != value && llvm::is_contained(yielded, wanted)) ||
          !(costly ? op->hasTrait<ir::Pointwise>() : isCheapToRepeat({op})) ||
          ir::shapeOf(wanted) != ir::shapeOf(value))
        return;
      for (Value operand : op->getOperands())
        self(self, operand);
      found.insert(op);
    };
    visit(visit, value);
    return found.takeVector();
  }

  /// Whether the cluster is still a kernel if it has this result, too, beside one that it has: of the same
  /// shape, or of that of its rows or their elements; and where it has another root, if that comes first.
  bool mayPutOut(const Cluster &cluster, Value value, Value beside) const {
    Operation *reduction = cluster.reduction();
    if (cluster.root() && !reduction)
      return clusters_.canAlsoYield(cluster, {}, value);
    return ir::shapeOf(value) == ir::shapeOf(beside) ||
           (reduction && (ir::shapeOf(value) == ir::shapeOf(reduction->getResult(0)) ||
                          ir::shapeOf(value) == ir::shapeOf(reduction->getOperand(0))));
  }

  //===--------------------------------------------------------------------===//
  // What it costs
  //===--------------------------------------------------------------------===//

  /// Whether all kernels together take less time if `readers` compute `result` by `ops`, the bytes that wait
  /// for the backward pass counted by their price. `vanishes`: nobody else reads it; `waits`: it does so in
  /// any case; `writer`, one of the readers, writes it again.
  bool pays(const Cluster &cluster, Value result, ArrayRef<Operation *> ops,
            const llvm::SetVector<Cluster *> &readers, bool vanishes, bool waits = false,
            const Cluster *writer = nullptr) const {
    llvm::SetVector<Value> needed = clusters_.inputsOf(ops), inputs = clusters_.inputsOf(cluster.ops),
                           outputs;
    outputs.insert_range(clusters_.outputsOf(cluster.ops));
    double before = nanoseconds(cluster.ops, inputs, outputs), after = 0;
    if (vanishes)
      outputs.remove(result);
    for (Value value : needed)
      if (clusters_.of(value.getDefiningOp()) == &cluster) {
        if (!mayPutOut(cluster, value, result))
          return false;
        outputs.insert(value);
      }
    if (!outputs.empty()) // else the kernel vanishes
      after = nanoseconds(cluster.ops, inputs, outputs);
    for (Cluster *reader : readers) {
      if (reader->ops.size() + ops.size() > kMaxKernelOps)
        return false;
      inputs = clusters_.inputsOf(reader->ops);
      outputs.clear();
      outputs.insert_range(clusters_.outputsOf(reader->ops));
      before += nanoseconds(reader->ops, inputs, outputs);
      inputs.remove(result);
      inputs.insert_range(needed);
      if (reader == writer)
        outputs.insert(result);
      SmallVector<Operation *> together(reader->ops);
      llvm::append_range(together, ops);
      after += nanoseconds(together, inputs, outputs) + repeatNanoseconds(newIn(*reader, ops), device_);
    }
    if (isPriced_ && !isLate(&cluster) && llvm::any_of(readers, isLate)) {
      before += waits ? 0 : residualNanoseconds(result, device_);
      for (Value value : needed)
        if (!isThereLate(value))
          after += residualNanoseconds(value, device_);
    }
    return after < before;
  }

  /// Those of `ops` that the cluster does not compute already.
  static SmallVector<Operation *> newIn(const Cluster &cluster, ArrayRef<Operation *> ops) {
    DenseMap<Value, Value> there;
    auto known = [&](Value value) { return there.lookup_or(value, value); };
    SmallVector<Operation *> missing;
    for (Operation *op : ops) {
      auto same = llvm::find_if(cluster.ops, [&](Operation *other) {
        return OperationEquivalence::isEquivalentTo(
            op, other, [&](Value a, Value b) { return success(known(a) == b); },
            /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
      });
      if (same == cluster.ops.end())
        missing.push_back(op);
      else
        there[op->getResult(0)] = (*same)->getResult(0);
    }
    return missing;
  }

  double nanoseconds(ArrayRef<Operation *> ops, const llvm::SetVector<Value> &inputs,
                     const llvm::SetVector<Value> &outputs) const {
    return kernelNanoseconds({ops, inputs.getArrayRef(), outputs.getArrayRef()}, device_);
  }

  FuseClusters &clusters_;
  const TargetDescription &device_;
  bool isPriced_;    ///< Else what waits for the backward pass is still in the cache then.
  bool mayBeCostly_; ///< A core that keeps nothing computes again in next to no time; the price decides.
  std::vector<unsigned> heights_; ///< Of nodes, before anything is repeated.
};

} // namespace

void repeatResults(FuseClusters &clusters, const TargetDescription &device) {
  Repeating(clusters, device).run();
}

} // namespace gpuc
