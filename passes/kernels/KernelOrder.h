//===- KernelOrder.h - A topological order of kernels that merge ------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace gpuc {

/// Kernels, and the ops between them, in an order in which each stands after what it reads. Kept while
/// kernels merge, it says how far a search may have to go: no path leads back in it, so that a question costs
/// what lies between two kernels, and not what lies in the whole program, and never more than a fixed effort.
/// [Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006]
class KernelOrder {
public:
  /// Nodes 0, 1, … count - 1, of which none reads a later one.
  explicit KernelOrder(unsigned count);

  /// Calls its second argument for each node that reads the given one, or that it reads, until that returns
  /// false; then it does.
  using Neighbours = llvm::function_ref<bool(unsigned, llvm::function_ref<bool(unsigned)>)>;

  /// Whether a path from `from` to `to`, which reads it, leads through other nodes; yes, too, if that cannot
  /// be told by looking at kMostLooks neighbours. It looks from both ends, and so no further than from the
  /// better.
  bool isReachedOtherwise(unsigned from, unsigned to, Neighbours readers, Neighbours reads);

  /// Whether `a` stands before `b`: no path leads from `b` to `a`.
  bool precedes(unsigned a, unsigned b) const { return rank_[a] < rank_[b]; }

  /// Takes `from` into `to`, which is not reached otherwise.
  void merge(unsigned from, unsigned to, Neighbours readers, Neighbours reads);

private:
  static constexpr unsigned kMostLooks = 1 << 13;
  /// A search of so many nodes is a short one, and needs no other beside it.
  static constexpr unsigned kFewNodes = 64;

  /// A search from one end, a node at a time, over nodes that stand between the two.
  class Search;

  std::vector<unsigned> inOrder(llvm::ArrayRef<unsigned> nodes) const;
  void unlink(unsigned node);
  /// Puts nodes, in their order, just behind `at`.
  void insertBehind(unsigned at, llvm::ArrayRef<unsigned> nodes);
  void spreadRanks();

  /// The order: a list, closed by a node that is none, and numbers that rise along it, with gaps for nodes
  /// that move. So a merge costs what the search before it has seen.
  std::vector<unsigned> next_, previous_;
  std::vector<uint64_t> rank_;
  std::vector<unsigned> seen_; ///< By node: the last search that came past it.
  unsigned searches_ = 0;
};

} // namespace gpuc
