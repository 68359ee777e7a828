//===- BlockModel.cpp - What a choice of values costs, as an estimate ----------===//

#include "passes/recompute/BlockModel.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc {

/// Of an op that becomes a command, or of a loop of them.
static double nanosecondsOf(Operation *op, const CostModel &cost) {
  auto scan = dyn_cast<ir::ScanOp>(op);
  if (!scan)
    return cost.nanosecondsOf(workOf(op));
  double nanoseconds = 0;
  for (Operation &inner : scan.getBlock())
    if (becomesCommand(&inner))
      nanoseconds += nanosecondsOf(&inner, cost);
  return scan.getTripCount() * nanoseconds;
}

BlockModel::BlockModel(const ForwardPass &forward, const CostModel &cost) {
  addOps(forward, cost);
  const llvm::BitVector all(size(), true);
  int64_t peak = simulate(all, 0).peak;
  const BlockModel asWritten = *this;
  for (bool onlyWhatFrees : {false, true}) {
    BlockModel ordered = asWritten.inOrder(asWritten.schedule(onlyWhatFrees));
    const int64_t orderedPeak = ordered.simulate(all, 0).peak;
    if (orderedPeak < peak) {
      peak = orderedPeak;
      *this = std::move(ordered);
    }
  }
}

/// The ops of the block as they come if all that can be dropped is.
static std::vector<Operation *> inOrderOfCopies(const ForwardPass &forward) {
  const std::vector<Operation *> early = forward.earlyReaders([&](Value value) {
    return llvm::any_of(bytesOf(value), [&](Value bytes) { return forward.computes(bytes); });
  });
  const DenseSet<Operation *> isEarly(early.begin(), early.end());
  DenseMap<Operation *, SmallVector<Operation *, 1>> before; // which are put before what
  for (Operation *op : early)
    before[firstReader(op)].push_back(op);
  std::vector<Operation *> order;
  auto put = [&](auto &self, Operation *op) -> void {
    for (Operation *first : before.lookup(op))
      self(self, first);
    order.push_back(op);
  };
  for (Operation &op : forward.block())
    if (!isEarly.contains(&op))
      put(put, &op);
  return order;
}

void BlockModel::addOps(const ForwardPass &forward, const CostModel &cost) {
  DenseMap<Value, unsigned> numbers;
  auto add = [&](Value value, int64_t bytes) {
    numbers[value] = bytes_.size();
    bytes_.push_back(bytes);
  };
  for (Operation *op : forward.ops())
    for (Value result : op->getResults())
      add(result, ir::sizeInBytes(result.getType()));
  producers_.resize(bytes_.size());
  residuals_.resize(bytes_.size());

  for (Operation *next : inOrderOfCopies(forward)) {
    Operation &op = *next;
    if (!becomesCommand(&op))
      continue;
    Op &made = ops_.emplace_back();
    made.nanoseconds = nanosecondsOf(&op, cost);
    made.backward = forward.isBackward(&op);
    made.mayOverwrite = isa<ir::FusedOp>(op);
    for (Value operand : op.getOperands())
      for (Value read : bytesOf(operand))
        if (auto found = numbers.find(read);
            found != numbers.end() && !llvm::is_contained(made.reads, found->second))
          made.reads.push_back(found->second);
    for (Value result : op.getResults()) {
      // What becomes of a variable, or goes to the next iteration, lies where that does.
      auto isState = [](Operation *user) {
        return isa<ir::AssignOp>(user) || user->hasTrait<OpTrait::IsTerminator>();
      };
      if (!numbers.contains(result))
        add(result, llvm::any_of(result.getUsers(), isState) ? 0 : ir::sizeInBytes(result.getType()));
      made.writes.push_back(numbers[result]);
      if (forward.computes(result)) {
        producers_[numbers[result]] = ops_.size() - 1;
        if (forward.readersOf(result).backward)
          residuals_.set(numbers[result]);
      }
    }
  }
}

std::vector<unsigned> BlockModel::schedule(bool onlyWhatFrees) const {
  std::vector<unsigned> left(bytes_.size()), waiting(ops_.size()), order;
  std::vector<SmallVector<unsigned, 4>> readers(bytes_.size());
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
  SmallVector<unsigned> ready; // sorted
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

BlockModel BlockModel::inOrder(ArrayRef<unsigned> order) const {
  BlockModel model = *this;
  model.ops_.clear();
  for (unsigned number : order) {
    for (unsigned value : ops_[number].writes)
      if (value < size())
        model.producers_[value] = model.ops_.size();
    model.ops_.push_back(ops_[number]);
  }
  return model;
}

/// The commands of a block in a row, those that compute again among them, and when their values live. The
/// copy of a value has the number behind all values that its own has among them.
class BlockModel::Run {
public:
  Run(const BlockModel &model, const llvm::BitVector &kept)
      : model_(model), kept_(kept), lives_(2 * model.bytes_.size()), copied_(model.ops_.size()) {
    for (const Op &op : model.ops_)
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

  int64_t bytes(unsigned value) const { return model_.bytes_[value % model_.bytes_.size()]; }

  bool isDropped(unsigned value) const { return value < model_.size() && !kept_.test(value); }

  /// The copies of what an op reads come before it.
  void take(const Op &op, bool again) {
    const bool readsCopies = again || op.backward;
    if (readsCopies)
      for (unsigned value : op.reads)
        if (isDropped(value))
          copy(model_.producers_[value]);
    const int64_t time = taken_.size();
    taken_.push_back(&op);
    for (unsigned value : op.reads)
      lives_[readsCopies && isDropped(value) ? value + model_.bytes_.size() : value].end = time;
    for (unsigned value : op.writes)
      lives_[again ? value + model_.bytes_.size() : value] = {time, time};
  }

  void copy(unsigned number) {
    if (copied_.test(number))
      return;
    copied_.set(number);
    nanoseconds_ += model_.ops_[number].nanoseconds;
    take(model_.ops_[number], /*again=*/true);
  }

  void findCrossing(const llvm::BitVector &above, llvm::BitVector &crossing) const {
    crossing.reset();
    for (unsigned value = 0; value < model_.size(); ++value)
      if (lives_[value].begin >= 0)
        if (int next = above.find_first_in(lives_[value].begin, lives_[value].end + 1); next >= 0)
          crossing.set(value);
  }

  const BlockModel &model_;
  const llvm::BitVector &kept_;
  std::vector<Life> lives_;
  llvm::BitVector copied_;
  std::vector<const Op *> taken_;
  double nanoseconds_ = 0;
};

BlockModel::Outcome BlockModel::simulate(const llvm::BitVector &kept, int64_t limit,
                                         llvm::BitVector *crossing) const {
  return Run(*this, kept).outcome(limit, crossing);
}

} // namespace gpuc
