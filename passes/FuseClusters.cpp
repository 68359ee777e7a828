//===- FuseClusters.cpp - The ops of a block in groups that become kernels --===//

#include "passes/FuseClusters.h"

#include "dialects/gpuc/ScanParts.h"
#include "passes/AttentionViews.h"
#include "passes/OuterProducts.h"
#include "passes/codegen/Codegen.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace gpuc {

static bool isKernelOp(Operation *op) { return isInlinable(op) || isRoot(op); }

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

Way Way::then(Operation *copied) const {
  auto broadcast = dyn_cast<ir::BroadcastOp>(copied);
  return {moves + !copied->hasTrait<ir::Pointwise>(), broadcast ? broadcast : repeated};
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
  if (of(op) || views_.contains(op))
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

void FuseClusters::eraseDead() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block_)))
    if (isKernelOp(&op) && op.use_empty())
      op.erase();
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
  eraseDead();
  separateCopies();
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
    if (!canBeKernel(cluster->ops))
      return cluster->ops.front()->emitOpError("cannot be compiled into a kernel");
  return success();
}

//===----------------------------------------------------------------------===//
// Who reads what
//===----------------------------------------------------------------------===//

void FuseClusters::forEachReader(Value value, function_ref<void(Operation *, Way)> visit, Way way) const {
  for (Operation *user : value.getUsers()) {
    if (!isCopied(user))
      visit(user, way);
    else
      forEachReader(user->getResult(0), visit, way.then(user));
  }
}

SmallVector<Value> FuseClusters::outputsOf(ArrayRef<Operation *> ops) const {
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

llvm::SetVector<Value> FuseClusters::inputsOf(ArrayRef<Operation *> ops) const {
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
  auto readers = [&](unsigned node, llvm::function_ref<void(unsigned)> visit) {
    Operation *op = ops_[node];
    Cluster *cluster = of(op);
    // A kernel gives nothing before it has everything.
    for (Operation *member : cluster ? ArrayRef(cluster->ops) : ArrayRef(op))
      for (Value result : member->getResults())
        forEachReader(result, [&](Operation *reader, Way) {
          if (unsigned other = nodeOf(reader); other != node)
            visit(other);
        });
  };
  return order_.isReachedOtherwise(producer.node, consumer.node, readers);
}

/// The kernel of an op, or else the op itself, in order_.
unsigned FuseClusters::nodeOf(Operation *op) const {
  Cluster *cluster = of(op);
  return cluster ? cluster->node : positions_.lookup(block_.findAncestorOpInBlock(*op));
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

bool FuseClusters::canBeKernel(ArrayRef<Operation *> ops) const {
  return succeeded(checkKernel(kernelOf(ops).body()));
}

void FuseClusters::merge(Cluster &producer, Cluster &consumer) {
  order_.merge(producer.node, consumer.node);
  consumer.ops = together(producer, consumer);
  for (Operation *op : producer.ops)
    clusters_[op] = &consumer;
  producer.ops.clear();
}

void FuseClusters::repeatIn(Cluster &reader, Value value, ArrayRef<Operation *> ops) {
  IRMapping copies;
  for (Operation *op : ops) {
    Operation *copy = OpBuilder(op).clone(*op, copies);
    positions_[copy] = positions_.lookup(op);
    clusters_[copy] = &reader;
    reader.ops.push_back(copy);
  }
  value.replaceUsesWithIf(copies.lookup(value), [&](OpOperand &use) {
    return of(use.getOwner()) == &reader && !llvm::is_contained(ops, use.getOwner());
  });
  sortByPosition(reader.ops);
}

void FuseClusters::shrink(Cluster &cluster) {
  SmallVector<Operation *> ops(cluster.ops);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty()) {
      llvm::erase(cluster.ops, op);
      clusters_.erase(op);
      op->erase();
    }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

FusedKernel FuseClusters::kernelOf(ArrayRef<Operation *> ops) const {
  return FusedKernel(ops, outputsOf(ops), [this](Operation *op) { return isCopied(op); });
}

LogicalResult FuseClusters::build(KernelNames &names) {
  llvm::SetVector<Cluster *> ordered;
  for (Operation &op : block_)
    if (Cluster *cluster = of(&op))
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

} // namespace gpuc
