//===- FuseClusters.cpp - The ops of a block in groups that become kernels --===//

#include "passes/kernels/FuseClusters.h"

#include "dialects/gpuc/ScanParts.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/WrittenAgain.h"
#include "passes/codegen/Codegen.h"
#include "passes/kernels/BlockOrder.h"
#include "passes/kernels/FuseSteps.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/Statistic.h"

#define DEBUG_TYPE "gpuc-fuse"

using namespace mlir;

namespace gpuc {

ALWAYS_ENABLED_STATISTIC(visits, "Looks from an op to another");

uint64_t fusionVisits() { return visits; }

/// So many copied ops a kernel may take in for one operand, whatever they stand on counted as often as it is
/// read: what stands on more is stored.
constexpr unsigned kMostCopies = 32;

/// Whether the op reads 16-bit numbers as f32. Stored, they would take twice the bytes of what they came
/// from.
static bool isWideningCast(Operation *op) {
  auto cast = dyn_cast<ir::CastOp>(op);
  if (!cast)
    return false;
  Type from = getElementTypeOrSelf(cast.getOperand().getType());
  return (from.isF16() || from.isBF16()) && getElementTypeOrSelf(cast.getType()).isF32();
}

Operation *Cluster::root() const {
  auto found = llvm::find_if(ops, isRoot);
  return found == ops.end() ? nullptr : *found;
}

Operation *Cluster::reduction() const {
  Operation *found = root();
  return found && isReduction(found) ? found : nullptr;
}

AccessPath AccessPath::then(Operation *copied) const {
  auto broadcast = dyn_cast<ir::BroadcastOp>(copied);
  return {moves + !copied->hasTrait<ir::Pointwise>(), broadcast ? broadcast : repeated};
}

AccessPath AccessPath::behind(Operation *copied) const {
  AccessPath through = AccessPath().then(copied);
  return {moves + through.moves, repeated ? repeated : through.repeated};
}

//===----------------------------------------------------------------------===//
// Making clusters
//===----------------------------------------------------------------------===//

static void eraseUnread(Operation *op) {
  while (op && op->use_empty() && isa<ir::TransposeOp, ir::SliceOp, ir::ReshapeOp>(op)) {
    Operation *from = op->getOperand(0).getDefiningOp();
    op->erase();
    op = from;
  }
}

bool FuseClusters::isCopied(Operation *op) const {
  if (of(op) || views_.contains(op) || tooLong_.contains(op))
    return false;
  return isa<ir::ConstantOp>(op) ||
         (copies_ && (isa<ir::IotaOp, ir::BroadcastOp, ir::TransposeOp, ir::SliceOp, ir::ReverseOp>(op) ||
                      isWideningCast(op) || isOuterProduct(op)));
}

/// Gives attention transposes, slices and reshapes of its own, which stay what they are: it reads and
/// writes through strides.
void FuseClusters::keepAttentionViews() {
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
      if (view.base == value || !isReadable(cast<RankedTensorType>(value.getType()).getShape(), view.strides))
        continue;
      OpBuilder builder(op);
      operand.set(copyView(builder, value, view.base));
      eraseUnread(value.getDefiningOp());
    }
  for (Operation *op : attentions)
    for (OpResult result : op->getResults())
      if (ir::TransposeOp transpose = transposeOfResult(result))
        views_.insert(transpose);
  if (joins_)
    for (Operation &op : block_)
      if (isResultView(&op))
        views_.insert(&op);
}

Value FuseClusters::copyView(OpBuilder &builder, Value value, Value base) {
  Operation *op = value.getDefiningOp();
  if (value == base || !isa<ir::TransposeOp, ir::SliceOp, ir::ReshapeOp>(op))
    return value;
  Value operand = copyView(builder, op->getOperand(0), base);
  Operation *copy = builder.clone(*op);
  copy->setOperand(0, operand);
  views_.insert(copy);
  return copy->getResult(0);
}

/// Has what stands on many copied ops stored, not copied: each kernel would compute all of them again, for
/// each of its elements.
void FuseClusters::limitCopies() {
  DenseMap<Operation *, unsigned> copies;
  for (Operation &op : block_) {
    if (!isCopied(&op))
      continue;
    unsigned count = 1;
    for (Value operand : op.getOperands())
      count += copies.lookup(operand.getDefiningOp());
    if (count > kMostCopies)
      tooLong_.insert(&op);
    else
      copies[&op] = count;
  }
}

/// Gives the readers that are no kernels (library calls, assigns, the return) a copy of their own of what
/// is copied into kernels, so that it can be told apart.
void FuseClusters::separateCopies() {
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

LogicalResult FuseClusters::make() {
  if (copies_)
    keepAttentionViews();
  eraseUnreadKernelOps(block_);
  limitCopies();
  separateCopies();
  for (auto [position, op] : llvm::enumerate(block_)) {
    positions_[&op] = position;
    ops_.push_back(&op);
  }
  order_ = KernelOrder(ops_.size());
  const LastSums sums(block_);
  products_ = LastProducts(block_);
  for (Operation &op : block_) {
    if (!isKernelOp(&op) || views_.contains(&op) || (isCopied(&op) && !materialized_.contains(&op)))
      continue;
    storage_.push_back(std::make_unique<Cluster>());
    storage_.back()->ops.push_back(&op);
    storage_.back()->node = positions_.lookup(&op);
    storage_.back()->reductions = isReduction(&op);
    storage_.back()->lastSum = sums.of(&op);
    storage_.back()->lastProduct = products_.of(&op);
    clusters_[&op] = storage_.back().get();
  }
  countReads();
  for (auto &cluster : storage_)
    if (failed(checkKernel(kernelOf(cluster->ops, outputsOf(cluster->ops)))))
      return cluster->ops.front()->emitOpError("cannot be compiled into a kernel");
  return success();
}

//===----------------------------------------------------------------------===//
// Who reads what
//===----------------------------------------------------------------------===//

bool FuseClusters::forEachReader(Value value, function_ref<bool(Operation *)> visit) const {
  for (Operation *user : value.getUsers()) {
    ++visits;
    if (isCopied(user) ? !forEachReader(user->getResult(0), visit) : !visit(user))
      return false;
  }
  return true;
}

void FuseClusters::forEachRead(Operation *reader, function_ref<void(Value, AccessPath)> visit) const {
  auto [entry, isNew] = readsBy_.try_emplace(reader);
  if (isNew)
    collectReads(reader, {}, entry->second);
  for (auto [value, path] : ArrayRef(entry->second)) {
    ++visits;
    visit(value, path);
  }
}

void FuseClusters::collectReads(Operation *reader, AccessPath path, SmallVectorImpl<Read> &reads) const {
  for (Value operand : reader->getOperands()) {
    reads.emplace_back(operand, path);
    if (Operation *op = operand.getDefiningOp(); op && isCopied(op))
      collectReads(op, path.behind(op), reads);
  }
}

void FuseClusters::countReads() {
  for (Operation &op : llvm::reverse(block_))
    for (Value result : op.getResults())
      for (Operation *user : result.getUsers())
        reads_[result] += isCopied(user) ? readsOf(user->getResult(0)) : 1;
}

void FuseClusters::addReads(Operation *reader, int sign) {
  forEachRead(reader, [&](Value value, AccessPath) { reads_[value] += sign; });
  if (sign < 0)
    readsBy_.erase(reader);
}

SmallVector<Value> FuseClusters::outputsOf(ArrayRef<Operation *> ops) const {
  llvm::SmallDenseMap<Value, unsigned, 32> inside;
  for (Operation *op : ops)
    forEachRead(op, [&](Value value, AccessPath) { ++inside[value]; });
  SmallVector<Value> outputs;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (yieldsAllResults(op) || readsOf(result) > inside.lookup(result))
        outputs.push_back(result);
  return outputs;
}

llvm::SetVector<Value> FuseClusters::inputsOf(ArrayRef<Operation *> ops) const {
  llvm::SetVector<Value> inputs;
  const llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.end());
  auto add = [&](auto &self, Value value) -> void {
    ++visits;
    Operation *op = value.getDefiningOp();
    if (op && isCopied(op))
      llvm::for_each(op->getOperands(), [&](Value operand) { self(self, operand); });
    else if (!op || !inside.contains(op))
      inputs.insert(value);
  };
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      add(add, operand);
  return inputs;
}

llvm::SetVector<Cluster *> FuseClusters::producersOf(Operation *op) const {
  llvm::SetVector<Cluster *> producers;
  auto collect = [&](auto &self, Operation *reader) -> void {
    for (Value operand : reader->getOperands())
      if (Operation *producer = operand.getDefiningOp()) {
        if (isCopied(producer))
          self(self, producer);
        else if (Cluster *cluster = of(producer); cluster && cluster != of(op))
          producers.insert(cluster);
      }
  };
  collect(collect, op);
  return producers;
}

bool FuseClusters::isReachedOtherwise(const Cluster &producer, const Cluster &consumer) {
  return order_.isReachedOtherwise(
      producer.node, consumer.node,
      [&](unsigned node, VisitNode visit) { return forEachReaderOf(node, visit); },
      [&](unsigned node, VisitNode visit) { return forEachReadOf(node, visit); });
}

/// The ops of a node: a kernel gives nothing before it has everything.
ArrayRef<Operation *> FuseClusters::opsOf(unsigned node) const {
  Cluster *cluster = of(ops_[node]);
  return cluster ? ArrayRef(cluster->ops) : ArrayRef(ops_[node]);
}

/// The kernel of an op, or else the op itself, in order_.
unsigned FuseClusters::nodeOf(Operation *op) const {
  Cluster *cluster = of(op);
  return cluster ? cluster->node : positions_.lookup(block_.findAncestorOpInBlock(*op));
}

bool FuseClusters::forEachReaderOf(unsigned node, function_ref<bool(unsigned)> visit) const {
  for (Operation *op : opsOf(node))
    for (Value result : op->getResults())
      if (!forEachReader(result, [&](Operation *reader) {
            unsigned other = nodeOf(reader);
            return other == node || visit(other);
          }))
        return false;
  return true;
}

bool FuseClusters::forEachReadOf(unsigned node, function_ref<bool(unsigned)> visit) const {
  bool goesOn = true;
  auto visitMaker = [&](Value value, AccessPath) {
    Operation *maker = value.getDefiningOp();
    if (!goesOn || !maker || maker->getBlock() != &block_ || isCopied(maker))
      return;
    unsigned other = nodeOf(maker);
    goesOn = other == node || visit(other);
  };
  for (Operation *op : opsOf(node))
    op->walk([&](Operation *inner) { forEachRead(inner, visitMaker); });
  return goesOn;
}

std::vector<unsigned> FuseClusters::heights() const {
  llvm::SetVector<unsigned> nodes;
  for (Operation &op : block_)
    if (!isCopied(&op))
      nodes.insert(nodeOf(&op));
  auto sorted = nodes.takeVector();
  std::vector<unsigned> heights(ops_.size());
  llvm::sort(sorted, [&](unsigned a, unsigned b) { return order_.precedes(b, a); });
  for (unsigned node : sorted)
    forEachReaderOf(node, [&](unsigned reader) {
      if (reader != node)
        heights[node] = std::max(heights[node], heights[reader] + 1);
      return true;
    });
  return heights;
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

void FuseClusters::sortByPosition(SmallVectorImpl<Operation *> &ops) const {
  llvm::sort(ops, [&](Operation *a, Operation *b) { return positions_.lookup(a) < positions_.lookup(b); });
}

SmallVector<Operation *> FuseClusters::together(const Cluster &a, const Cluster &b) const {
  SmallVector<Operation *> ops(a.ops);
  llvm::append_range(ops, b.ops);
  sortByPosition(ops);
  return ops;
}

bool FuseClusters::isStored(const Cluster &cluster) const {
  return llvm::any_of(cluster.ops, [&](Operation *op) { return tooLong_.contains(op); });
}

bool FuseClusters::canBeOneKernel(const Cluster &a, const Cluster &b) const {
  const SmallVector<Operation *> ops = together(a, b);
  const KernelOps kernel = kernelOf(ops, outputsOf(ops));
  return !repeatsElements(kernel) && succeeded(checkKernel(kernel));
}

unsigned FuseClusters::lastProductOf(Operation *op) const {
  const Cluster *cluster = of(op);
  return cluster ? cluster->lastProduct : products_.of(op);
}

void FuseClusters::merge(Cluster &producer, Cluster &consumer) {
  order_.merge(
      producer.node, consumer.node,
      [&](unsigned node, VisitNode visit) { return forEachReaderOf(node, visit); },
      [&](unsigned node, VisitNode visit) { return forEachReadOf(node, visit); });
  consumer.ops = together(producer, consumer);
  consumer.reductions += producer.reductions;
  consumer.lastSum = std::max(consumer.lastSum, producer.lastSum);
  consumer.lastProduct = std::max(consumer.lastProduct, producer.lastProduct);
  for (Operation *op : producer.ops)
    clusters_[op] = &consumer;
  producer.ops.clear();
}

Value FuseClusters::repeatIn(Cluster &reader, Value value, ArrayRef<Operation *> ops) {
  IRMapping copies;
  for (Operation *op : ops) {
    Operation *copy = OpBuilder(op).clone(*op, copies);
    positions_[copy] = positions_.lookup(op);
    clusters_[copy] = &reader;
    reader.ops.push_back(copy);
    reader.reductions += isReduction(copy);
    addReads(copy, 1);
  }
  for (Operation *user : llvm::to_vector(value.getUsers()))
    if (isCopied(user) && isa<ir::CastOp>(user) &&
        llvm::any_of(user->getUsers(), [&](Operation *op) { return of(op) == &reader; }))
      OpBuilder(user).clone(*user, copies);
  for (Operation *op : ArrayRef(reader.ops).drop_back(ops.size())) {
    addReads(op, -1);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(copies.lookupOrDefault(operand.get()));
    addReads(op, 1);
  }
  sortByPosition(reader.ops);
  return copies.lookup(value);
}

void FuseClusters::writeAgain(const Cluster &writer, Value value, Value copy, IsLate late) {
  Operation *behind = writer.ops.back();
  readInstead(value, copy, late, behind);
  writtenAgain_.emplace_back(value, copy);
}

/// Has late readers of `from` read `to`. Those that stand in front of the op that makes `to` follow that,
/// `behind` the last one of them: sorted by what they read, they would come behind all that stands there.
void FuseClusters::readInstead(Value from, Value to, IsLate late, Operation *&behind) {
  auto follow = [&](Operation *op) {
    if (op->getBlock() != &block_ || of(op))
      return;
    if (!block_.isOpOrderValid())
      visits += block_.getOperations().size(); // to number all of them
    if (!op->isBeforeInBlock(behind))
      return;
    op->remove(); // moveAfter would have the whole block numbered anew
    block_.getOperations().insertAfter(Block::iterator(behind), op);
    behind = op;
  };
  llvm::SetVector<Operation *> users;
  users.insert_range(from.getUsers());
  for (Operation *user : users) {
    const bool looksThrough = isCopied(user) || isa<ir::ReshapeOp>(user);
    if (!looksThrough && !late(user))
      continue;
    Operation *reader = looksThrough ? OpBuilder(user).clone(*user) : user;
    if (!looksThrough)
      addReads(user, -1);
    reader->replaceUsesOfWith(from, to);
    if (!isCopied(reader))
      addReads(reader, 1);
    Operation *const front = behind;
    follow(reader);
    if (!looksThrough)
      continue;
    positions_[reader] = positions_.lookup(user);
    if (views_.contains(user))
      views_.insert(reader);
    readInstead(user->getResult(0), reader->getResult(0), late, behind);
    if (reader->use_empty() && behind == reader)
      behind = front; // nobody late looked through it
    eraseUnreadView(reader);
    eraseUnreadView(user);
  }
}

/// Takes out what only says where to read, or of what shape, if nobody does.
void FuseClusters::eraseUnreadView(Operation *op) {
  if (!op->use_empty())
    return;
  if (!isCopied(op))
    addReads(op, -1);
  views_.erase(op);
  op->erase();
}

bool FuseClusters::canAlsoYield(const Cluster &cluster, ArrayRef<Operation *> ops, Value value) const {
  SmallVector<Operation *> all(cluster.ops);
  llvm::append_range(all, ops);
  sortByPosition(all);
  SmallVector<Value> outputs = outputsOf(cluster.ops);
  outputs.push_back(value);
  const KernelOps kernel = kernelOf(all, outputs);
  return !repeatsElements(kernel) && succeeded(checkKernel(kernel));
}

void FuseClusters::shrink(Cluster &cluster) {
  SmallVector<Operation *> ops(cluster.ops);
  for (Operation *op : llvm::reverse(ops)) {
    for (Operation *user : llvm::to_vector(op->getUsers()))
      if (isCopied(user) && user->use_empty())
        user->erase();
    if (op->use_empty()) {
      llvm::erase(cluster.ops, op);
      cluster.reductions -= isReduction(op);
      clusters_.erase(op);
      addReads(op, -1);
      op->erase();
    }
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

KernelOps FuseClusters::kernelOf(ArrayRef<Operation *> ops, ArrayRef<Value> outputs) const {
  KernelOps kernel;
  llvm::append_range(kernel.results, outputs);
  llvm::SmallPtrSet<Operation *, 32> copied;
  auto add = [&](auto &self, Operation *reader) -> void {
    for (Value operand : reader->getOperands())
      if (Operation *op = operand.getDefiningOp(); op && isCopied(op) && copied.insert(op).second)
        self(self, op);
    kernel.ops.push_back(reader);
  };
  for (Operation *op : ops)
    add(add, op);
  return kernel;
}

LogicalResult FuseClusters::build(KernelNames &names) {
  llvm::SetVector<Cluster *> ordered;
  for (Operation &op : block_)
    if (Cluster *cluster = of(&op))
      ordered.insert(cluster);
  DenseMap<Value, OpResult> results;
  for (Cluster *cluster : ordered) {
    const SmallVector<Value> outputs = outputsOf(cluster->ops);
    FusedKernel kernel(cluster->ops, outputs, [this](Operation *op) { return isCopied(op); });
    OpBuilder builder(block_.getParentOp());
    builder.setInsertionPointAfter(cluster->ops.back());
    ir::FusedOp fused = kernel.build(builder, names.nameFor(cluster->ops));
    for (auto [output, result] : llvm::zip_equal(outputs, fused->getResults()))
      results[output] = cast<OpResult>(result);
  }
  for (auto [value, copy] : writtenAgain_)
    if (OpResult result = results.lookup(copy), first = results.lookup(value); result && first)
      noteWrittenAgain(result, first);
  eraseUnreadKernelOps(block_); // What the kernels replace.
  // A result that is read between the first and the last op of its kernel is now read before it is
  // computed.
  if (failed(sortBehindOperands(block_)))
    return block_.getParentOp()->emitOpError("has kernels that wait for one another");
  return success();
}

} // namespace gpuc
