//===- KernelOrder.cpp - A topological order of kernels that merge ----------===//

#include "passes/kernels/KernelOrder.h"

#include "llvm/ADT/STLExtras.h"

namespace gpuc {

KernelOrder::KernelOrder(unsigned count)
    : next_(count + 1), previous_(count + 1), rank_(count + 1), seen_(count) {
  for (unsigned node = 0; node <= count; ++node) {
    next_[node] = node == count ? 0 : node + 1;
    previous_[node] = node == 0 ? count : node - 1;
  }
  spreadRanks();
}

class KernelOrder::Search {
public:
  Search(KernelOrder &order, unsigned begin, unsigned end, Neighbours neighbours)
      : order_(order), begin_(begin), end_(end), neighbours_(neighbours), number_(++order.searches_) {
    seen.push_back(begin);
  }

  bool isDone() const { return next_ == seen.size(); }

  /// Looks on from one node; false if that leads to the other end, by a path through others, to what the
  /// search from there has seen, or after too much effort.
  bool step(const Search *fromEnd = nullptr) {
    const unsigned node = seen[next_++];
    return neighbours_(node, [&](unsigned other) {
      if ((fromEnd && ++looks_ > kMostLooks) || (fromEnd && other == end_ && node != begin_) ||
          (fromEnd && other != begin_ && order_.seen_[other] == fromEnd->number_))
        return false;
      if (other != end_ && other != begin_ && isBetween(other) && order_.seen_[other] != number_) {
        order_.seen_[other] = number_;
        seen.push_back(other);
      }
      return true;
    });
  }

  std::vector<unsigned> seen; ///< The beginning first.

private:
  bool isBetween(unsigned node) const { return order_.precedes(begin_, end_) == order_.precedes(node, end_); }

  KernelOrder &order_;
  unsigned begin_, end_;
  Neighbours neighbours_;
  unsigned number_;
  size_t next_ = 0;
  unsigned looks_ = 0;
};

bool KernelOrder::isReachedOtherwise(unsigned from, unsigned to, Neighbours readers, Neighbours reads) {
  Search forwards(*this, from, to, readers), backwards(*this, to, from, reads);
  // A value may have very many readers, but few operands.
  for (unsigned steps = 0; !forwards.isDone() && !backwards.isDone(); ++steps)
    if (!backwards.step(&forwards) || (steps >= kFewNodes && !forwards.step(&backwards)))
      return true;
  return false;
}

std::vector<unsigned> KernelOrder::inOrder(llvm::ArrayRef<unsigned> nodes) const {
  std::vector<unsigned> sorted(nodes.begin(), nodes.end());
  llvm::sort(sorted, [&](unsigned a, unsigned b) { return precedes(a, b); });
  return sorted;
}

void KernelOrder::merge(unsigned from, unsigned to, Neighbours readers, Neighbours reads) {
  Search forwards(*this, from, to, readers), backwards(*this, to, from, reads);
  for (unsigned steps = 0; !forwards.isDone() && !backwards.isDone(); ++steps) {
    forwards.step();
    if (steps >= kFewNodes)
      backwards.step();
  }
  unlink(from);
  if (forwards.isDone()) {
    // What reads `from` reads the whole from now on; the rest may be what `to` reads.
    std::vector<unsigned> moved = inOrder(llvm::ArrayRef(forwards.seen).drop_front());
    llvm::for_each(moved, [&](unsigned node) { unlink(node); });
    return insertBehind(to, moved);
  }
  // What `to` reads goes before, and the whole stands where `from` stood.
  std::vector<unsigned> moved = inOrder(backwards.seen);
  llvm::for_each(moved, [&](unsigned node) { unlink(node); });
  insertBehind(previous_[from], moved);
}

void KernelOrder::unlink(unsigned node) {
  next_[previous_[node]] = next_[node];
  previous_[next_[node]] = previous_[node];
}

void KernelOrder::insertBehind(unsigned at, llvm::ArrayRef<unsigned> nodes) {
  const unsigned first = at, behind = next_[at];
  for (unsigned node : nodes) {
    next_[at] = node;
    previous_[node] = at;
    at = node;
  }
  next_[at] = behind;
  previous_[behind] = at;
  const uint64_t gap = (rank_[behind] - rank_[first]) / (nodes.size() + 1);
  if (gap == 0)
    return spreadRanks();
  for (unsigned node : nodes)
    rank_[node] = rank_[previous_[node]] + gap;
}

void KernelOrder::spreadRanks() {
  const unsigned end = next_.size() - 1;
  const uint64_t gap = UINT64_MAX / next_.size();
  uint64_t rank = 0;
  for (unsigned node = next_[end]; node != end; node = next_[node])
    rank_[node] = rank += gap;
  rank_[end] = UINT64_MAX;
}

} // namespace gpuc
