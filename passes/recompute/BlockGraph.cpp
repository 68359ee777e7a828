//===- BlockGraph.cpp - What a choice of values costs, as an estimate ----------===//

#include "passes/recompute/BlockGraph.h"

#include "llvm/ADT/STLExtras.h"

namespace gpuc {

BlockGraph::BlockGraph(std::vector<Op> ops, std::vector<int64_t> bytes, std::vector<int64_t> bytesAgain)
    : ops_(std::move(ops)), bytes_(std::move(bytes)), bytesAgain_(std::move(bytesAgain)),
      producers_(bytesAgain_.size()), residuals_(bytesAgain_.size()) {
  const unsigned droppable = size();
  for (auto [number, op] : llvm::enumerate(ops_)) {
    for (unsigned value : op.writes)
      if (value < droppable)
        producers_[value] = number;
    for (unsigned value : op.reads)
      if (value < droppable && op.backward)
        residuals_.set(value);
  }
}

/// The numbers of the ops as plan-order would have them.
std::vector<unsigned> BlockGraph::schedule(bool onlyWhatFrees) const {
  std::vector<unsigned> left(bytes_.size()), waiting(ops_.size()), order;
  std::vector<llvm::SmallVector<unsigned, 4>> readers(bytes_.size());
  llvm::BitVector isWritten(bytes_.size());
  for (auto [number, op] : llvm::enumerate(ops_)) {
    for (unsigned value : op.writes)
      isWritten.set(value);
    for (unsigned value : op.reads) {
      ++left[value];
      readers[value].push_back(number);
      waiting[number] += isWritten.test(value);
    }
  }
  auto growth = [&](unsigned number) {
    int64_t bytes = 0;
    for (unsigned value : ops_[number].writes)
      bytes += left[value] ? bytes_[value] : 0;
    for (unsigned value : ops_[number].reads)
      bytes -= left[value] == 1 ? bytes_[value] : 0;
    return onlyWhatFrees ? std::min<int64_t>(bytes, 0) : bytes;
  };
  llvm::SmallVector<unsigned> ready; // sorted
  for (unsigned number = 0; number < ops_.size(); ++number)
    if (waiting[number] == 0)
      ready.push_back(number);
  while (!ready.empty()) {
    auto best = llvm::min_element(ready, [&](unsigned a, unsigned b) { return growth(a) < growth(b); });
    const unsigned number = *best;
    ready.erase(best);
    order.push_back(number);
    for (unsigned value : ops_[number].reads)
      --left[value];
    for (unsigned value : ops_[number].writes)
      for (unsigned reader : readers[value])
        if (--waiting[reader] == 0)
          ready.insert(llvm::lower_bound(ready, reader), reader);
  }
  return order;
}

BlockGraph BlockGraph::inOrder(llvm::ArrayRef<unsigned> order) const {
  std::vector<Op> ops;
  for (unsigned number : order)
    ops.push_back(ops_[number]);
  return BlockGraph(std::move(ops), bytes_, bytesAgain_);
}

BlockGraph BlockGraph::ordered() const {
  const llvm::BitVector all(size(), true);
  BlockGraph best = *this;
  int64_t peak = simulate(all, 0).peak;
  for (bool onlyWhatFrees : {false, true}) {
    BlockGraph graph = inOrder(schedule(onlyWhatFrees));
    if (int64_t ofGraph = graph.simulate(all, 0).peak; ofGraph < peak) {
      peak = ofGraph;
      best = std::move(graph);
    }
  }
  return best;
}

/// The commands of a block in a row, those that compute again among them, and when their values live. The
/// copy of a value has the number behind all values that its own has among them.
class BlockGraph::Run {
public:
  Run(const BlockGraph &graph, const llvm::BitVector &kept)
      : graph_(graph), kept_(kept), lives_(2 * graph.bytes_.size()), copied_(graph.ops_.size()) {
    for (const Op &op : graph.ops_)
      take(op, /*again=*/false);
  }

  Outcome outcome(int64_t limit, llvm::BitVector *crossing) const {
    std::vector<int64_t> begins(taken_.size() + 1), ends(taken_.size() + 1), overwrites(taken_.size());
    for (auto [number, life] : llvm::enumerate(lives_))
      if (life.begin >= 0) {
        begins[life.begin] += bytes(number);
        ends[life.end] += bytes(number);
      }
    Outcome outcome;
    outcome.nanoseconds = nanoseconds_;
    outcome.commands = taken_.size();
    llvm::BitVector above(taken_.size());
    int64_t live = 0;
    for (size_t time = 0; time < taken_.size(); ++time) {
      live += begins[time];
      const int64_t now = live - (taken_[time]->mayOverwrite ? std::min(begins[time], ends[time]) : 0);
      outcome.peak = std::max(outcome.peak, now);
      if (now > limit) {
        outcome.excess += now - limit;
        above.set(time);
      }
      live -= ends[time];
    }
    if (crossing)
      findCrossing(above, *crossing);
    return outcome;
  }

private:
  struct Life {
    int64_t begin = -1, end = -1; ///< The first and the last command that touch it; -1: none does.
  };

  int64_t bytes(unsigned number) const {
    const unsigned value = number % graph_.bytes_.size();
    return isDropped(value) ? graph_.bytesAgain_[value] : graph_.bytes_[value];
  }

  bool isDropped(unsigned value) const { return value < graph_.size() && !kept_.test(value); }

  /// The copies of what an op reads come before it.
  void take(const Op &op, bool again) {
    const bool readsCopies = again || op.backward;
    if (readsCopies)
      for (unsigned value : op.reads)
        if (isDropped(value))
          copy(graph_.producers_[value]);
    const int64_t time = taken_.size();
    taken_.push_back(&op);
    for (unsigned value : op.reads)
      lives_[readsCopies && isDropped(value) ? value + graph_.bytes_.size() : value].end = time;
    for (unsigned value : op.writes)
      lives_[again ? value + graph_.bytes_.size() : value] = {time, time};
  }

  void copy(unsigned number) {
    if (copied_.test(number))
      return;
    copied_.set(number);
    nanoseconds_ += graph_.ops_[number].nanoseconds;
    take(graph_.ops_[number], /*again=*/true);
  }

  void findCrossing(const llvm::BitVector &above, llvm::BitVector &crossing) const {
    crossing.reset();
    for (unsigned value = 0; value < graph_.size(); ++value)
      if (lives_[value].begin >= 0)
        if (int next = above.find_first_in(lives_[value].begin, lives_[value].end + 1); next >= 0)
          crossing.set(value);
  }

  const BlockGraph &graph_;
  const llvm::BitVector &kept_;
  std::vector<Life> lives_;
  llvm::BitVector copied_;
  std::vector<const Op *> taken_;
  double nanoseconds_ = 0;
};

BlockGraph::Outcome BlockGraph::simulate(const llvm::BitVector &kept, int64_t limit,
                                         llvm::BitVector *crossing) const {
  return Run(*this, kept).outcome(limit, crossing);
}

} // namespace gpuc
