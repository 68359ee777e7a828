//===- FuseClusters.h - The ops of a block in groups that become kernels ----===//
//
// Ops that only say where to read or what constant to use (constant, iota, broadcast, transpose …), that read
// 16 bits as f32, or that multiply two vectors into a matrix, are copied into each kernel that reads them.
// Every other op that a kernel computes begins as a cluster of its own; gpuc-fuse merges clusters.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/Codegen.h"
#include "passes/kernels/FusedKernel.h"
#include "passes/kernels/KernelOrder.h"
#include "passes/kernels/LastSums.h"

#include "llvm/ADT/SetVector.h"

namespace gpuc {

/// Ops that become one kernel, in block order.
struct Cluster {
  llvm::SmallVector<mlir::Operation *> ops;
  unsigned node = 0;        ///< In KernelOrder: the position of the op that it began as.
  unsigned reductions = 0;  ///< Of its ops.
  unsigned lastSum = 0;     ///< Over ranks, that it waits for (LastSums.h).
  unsigned lastProduct = 0; ///< The same of products.

  mlir::Operation *root() const;
  /// The root, if that is a reduction.
  mlir::Operation *reduction() const;
};

/// How a reader sees a value: at its own index, or through copied ops that move or repeat its elements.
struct AccessPath {
  unsigned moves = 0;            ///< Copied ops that move or repeat elements.
  ir::BroadcastOp repeated = {}; ///< The last of them that is one.

  AccessPath then(mlir::Operation *copied) const;
  /// The path that leads through `copied` before this one.
  AccessPath behind(mlir::Operation *copied) const;
};

/// How often fusion has looked from an op to another in this process, for tests: it must grow as the number
/// of ops does, whatever they share.
uint64_t fusionVisits();

class FuseClusters {
public:
  /// `copies`: false leaves every op but constants where it is (-O0). `joins`: whether attention writes its
  /// results into their concat.
  FuseClusters(mlir::Block &block, bool copies, bool joins) : block_(block), copies_(copies), joins_(joins) {}

  /// One cluster for each op. Fails, with an error, at an op of which no kernel can be made.
  mlir::LogicalResult make();
  /// Puts a gpuc.fused in the place of each cluster.
  mlir::LogicalResult build(KernelNames &names);

  mlir::Block &block() const { return block_; }
  /// Null of what no kernel computes, and of copied ops.
  Cluster *of(mlir::Operation *op) const { return clusters_.lookup(op); }

  /// Calls `visit` for each op, copied ones aside, that reads `value`. There may be as many as the block has
  /// ops: who asks for each op, asks the readers what they read instead, or stops early by returning false.
  bool forEachReader(mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> visit) const;
  /// Calls `visit` for each value that the op reads, be it through copied ops: for these, too, and for what
  /// they read.
  void forEachRead(mlir::Operation *reader, llvm::function_ref<void(mlir::Value, AccessPath)> visit) const;
  /// How many reads of the value by ops other than copied ones there are: those that forEachRead() meets.
  unsigned readsOf(mlir::Value value) const { return reads_.lookup(value); }
  /// The other clusters that the op reads.
  llvm::SetVector<Cluster *> producersOf(mlir::Operation *op) const;
  /// What these ops read from outside, copied ops looked through.
  llvm::SetVector<mlir::Value> inputsOf(llvm::ArrayRef<mlir::Operation *> ops) const;
  /// The results that ops outside of `ops` read, and those that a kernel yields in any case.
  llvm::SmallVector<mlir::Value> outputsOf(llvm::ArrayRef<mlir::Operation *> ops) const;

  /// The ops of both, in block order.
  llvm::SmallVector<mlir::Operation *> together(const Cluster &a, const Cluster &b) const;
  /// Whether the emitter makes one kernel of the ops of both, and computes few of their elements several
  /// times.
  bool canBeOneKernel(const Cluster &a, const Cluster &b) const;
  /// Whether others are to read what it computes, and not to compute it with all that it stands on.
  bool isStored(const Cluster &cluster) const;
  /// Whether a path from `producer` to `consumer` leads through other kernels or ops: merged, they would wait
  /// for themselves.
  bool isReachedOtherwise(const Cluster &producer, const Cluster &consumer);
  /// Of two clusters the one that cannot depend on the other comes first; else they may be in any order.
  bool comesFirst(const Cluster &a, const Cluster &b) const { return order_.precedes(a.node, b.node); }
  /// Takes `producer`, which becomes empty, into `consumer`, just after asking whether that is reached
  /// otherwise.
  void merge(Cluster &producer, Cluster &consumer);

  /// The last product that the op's kernel, or else the op itself, waits for (LastSums.h).
  unsigned lastProductOf(mlir::Operation *op) const;

  /// Whether the op is copied into each kernel that reads it.
  bool isCopied(mlir::Operation *op) const;
  /// Lets `reader` compute `value`, by its own copies of `ops`, instead of reading it; the copy of `value`.
  mlir::Value repeatIn(Cluster &reader, mlir::Value value, llvm::ArrayRef<mlir::Operation *> ops);
  /// Lets `writer`, whose `copy` of `value` repeatIn() has made, write it again: those of its readers, be it
  /// through copied ops or under another shape, read the copy that are `late`.
  void writeAgain(const Cluster &writer, mlir::Value value, mlir::Value copy,
                  llvm::function_ref<bool(mlir::Operation *)> late);
  /// Whether the emitter makes one kernel of the cluster and `ops`, by which it computes `value`, that yields
  /// this beside its results.
  bool canAlsoYield(const Cluster &cluster, llvm::ArrayRef<mlir::Operation *> ops, mlir::Value value) const;
  /// Of each node the most kernels and ops that a path has which leads from it to the block's end.
  std::vector<unsigned> heights() const;
  /// The kernel of an op, or else the op itself, as a node.
  unsigned nodeOf(mlir::Operation *op) const;
  /// Takes out what nobody reads any more.
  void shrink(Cluster &cluster);

private:
  void limitCopies();
  void countReads();
  void addReads(mlir::Operation *reader, int sign);
  void keepAttentionViews();
  mlir::Value copyView(mlir::OpBuilder &builder, mlir::Value value, mlir::Value base);
  void separateCopies();
  using Read = std::pair<mlir::Value, AccessPath>;
  void collectReads(mlir::Operation *reader, AccessPath path, llvm::SmallVectorImpl<Read> &reads) const;
  KernelOps kernelOf(llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> outputs) const;
  using IsLate = llvm::function_ref<bool(mlir::Operation *)>;
  void readInstead(mlir::Value from, mlir::Value to, IsLate late, mlir::Operation *&behind);
  void eraseUnreadView(mlir::Operation *op);
  llvm::ArrayRef<mlir::Operation *> opsOf(unsigned node) const;
  using VisitNode = llvm::function_ref<bool(unsigned)>;
  bool forEachReaderOf(unsigned node, VisitNode visit) const;
  bool forEachReadOf(unsigned node, VisitNode visit) const;
  void sortByPosition(llvm::SmallVectorImpl<mlir::Operation *> &ops) const;

  mlir::Block &block_;
  bool copies_, joins_;
  llvm::SmallVector<mlir::Operation *> ops_;
  llvm::DenseMap<mlir::Operation *, unsigned> positions_; ///< In ops_.
  KernelOrder order_{0};
  LastProducts products_;
  llvm::DenseMap<mlir::Operation *, Cluster *> clusters_;
  llvm::SmallVector<std::unique_ptr<Cluster>> storage_;
  llvm::DenseMap<mlir::Value, unsigned> reads_;
  /// What forEachRead() visits, of ops that it was asked about since they last changed.
  mutable llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Read, 0>> readsBy_;
  llvm::SmallPtrSet<mlir::Operation *, 8> tooLong_; ///< What would be copied but for all that it stands on.
  llvm::SmallPtrSet<mlir::Operation *, 8> materialized_;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> writtenAgain_; ///< Values, and their copies.
  llvm::SmallPtrSet<mlir::Operation *, 8> views_; ///< What attention sees through strides.
};

} // namespace gpuc
