//===- KernelOrder.h - A topological order of kernels that merge ------------===//
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace gpuc {

/// Kernels, and the ops between them, in an order in which each stands after what it reads. Kept while
/// kernels merge, it says how far a search may have to go: no way leads back in it, so that a question costs
/// what lies between two kernels, and not what lies in the whole program. [Pearce and Kelly, "A dynamic
/// topological sort algorithm for directed acyclic graphs", 2006]
class KernelOrder {
public:
  /// Nodes 0, 1, … count - 1, of which none reads a later one.
  explicit KernelOrder(unsigned count);

  /// Calls its second argument for each node that reads the given one.
  using Readers = llvm::function_ref<void(unsigned, llvm::function_ref<void(unsigned)>)>;

  /// Whether a way from `from` to `to`, which reads it, leads through other nodes.
  bool isReachedOtherwise(unsigned from, unsigned to, Readers readers);

  /// Whether `a` stands before `b`: no way leads from `b` to `a`.
  bool precedes(unsigned a, unsigned b) const { return rank_[a] < rank_[b]; }

  /// Takes `from` into `to`. The last question must have been whether `to` is reached otherwise, and the
  /// answer no.
  void merge(unsigned from, unsigned to);

private:
  void place(unsigned node, unsigned rank);

  std::vector<unsigned> order_; ///< By rank.
  std::vector<unsigned> rank_;  ///< By node.
  std::vector<unsigned> seen_;  ///< By node: the last question that came past it.
  unsigned question_ = 0;
};

} // namespace gpuc
