//===- KernelOrder.cpp - A topological order of kernels that merge ----------===//

#include "passes/KernelOrder.h"

#include "llvm/ADT/SmallVector.h"

#include <numeric>

namespace gpuc {

KernelOrder::KernelOrder(unsigned count) : order_(count), rank_(count), seen_(count) {
  std::iota(order_.begin(), order_.end(), 0);
  std::iota(rank_.begin(), rank_.end(), 0);
}

bool KernelOrder::isReachedOtherwise(unsigned from, unsigned to, Readers readers) {
  ++question_;
  llvm::SmallVector<unsigned> queue{from};
  bool reached = false;
  while (!queue.empty() && !reached) {
    unsigned node = queue.pop_back_val();
    readers(node, [&](unsigned reader) {
      if (reader == to)
        reached |= node != from;
      else if (rank_[reader] < rank_[to] && reader != from && seen_[reader] != question_) {
        seen_[reader] = question_;
        queue.push_back(reader);
      }
    });
  }
  return reached;
}

void KernelOrder::merge(unsigned from, unsigned to) {
  // What was seen reads `from`, and so the whole from now on; the rest may be what `to` reads.
  llvm::SmallVector<unsigned> readers;
  unsigned last = rank_[to], next = rank_[from];
  for (unsigned rank = next; rank <= last; ++rank) {
    unsigned node = order_[rank];
    if (seen_[node] == question_)
      readers.push_back(node);
    else
      place(node, next++);
  }
  for (unsigned node : readers)
    place(node, next++);
}

void KernelOrder::place(unsigned node, unsigned rank) {
  order_[rank] = node;
  rank_[node] = rank;
}

} // namespace gpuc
