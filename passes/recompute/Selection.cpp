//===- Selection.cpp - What to keep within so many bytes -----------------------===//
//
// Greedy: of the values that live where too much does, the one is dropped that frees the most for the time
// that it takes, until all is within the limit. Then whatever there is still room for is kept again, the
// dearest for its bytes first.
// It can end where only several values together would free anything. So the search begins at the other end,
// too, where little is kept.
//
//===----------------------------------------------------------------------===//

#include "passes/recompute/Selection.h"

using namespace mlir;

namespace gpuc {
namespace {

/// Of the values that could be dropped next, so many are weighed.
constexpr size_t kWeighed = 32;

class Selection {
public:
  explicit Selection(const BlockModel &model) : model_(model), kept_(model.size()), crossing_(model.size()) {
    for (unsigned value = 0; value < model.size(); ++value)
      if (model.isResidual(value))
        kept_.set(value); // what else there is only copies would read
  }

  Selection(const BlockModel &model, llvm::BitVector kept)
      : model_(model), kept_(std::move(kept)), crossing_(model.size()) {}

  const llvm::BitVector &kept() const { return kept_; }
  int64_t peak() const { return model_.simulate(kept_, 0).peak; }
  double nanoseconds() const { return model_.simulate(kept_, 0).nanoseconds; }

  /// False if nothing frees anything any more.
  bool dropTo(int64_t limit) {
    for (;;) {
      const BlockModel::Outcome now = model_.simulate(kept_, limit, &crossing_);
      if (now.excess == 0)
        return true;
      std::optional<unsigned> best = bestToDrop(now, limit);
      if (!best)
        return false;
      kept_.reset(*best);
    }
  }

  void keepWhatFits(int64_t limit) {
    SmallVector<unsigned> dropped;
    for (unsigned value = 0; value < model_.size(); ++value)
      if (!kept_.test(value))
        dropped.push_back(value);
    llvm::stable_sort(dropped, [&](unsigned a, unsigned b) { return worth(a) > worth(b); });
    BlockModel::Outcome now = model_.simulate(kept_, limit);
    for (unsigned value : dropped) {
      kept_.set(value);
      const BlockModel::Outcome with = model_.simulate(kept_, limit);
      if (with.excess == 0 && with.nanoseconds < now.nanoseconds)
        now = with;
      else
        kept_.reset(value);
    }
  }

private:
  /// Time for each byte.
  double worth(unsigned value) const { return model_.nanoseconds(value) / (1 + model_.bytes(value)); }

  std::optional<unsigned> bestToDrop(const BlockModel::Outcome &now, int64_t limit) {
    SmallVector<unsigned> candidates;
    for (unsigned value : crossing_.set_bits())
      if (kept_.test(value))
        candidates.push_back(value);
    llvm::stable_sort(candidates, [&](unsigned a, unsigned b) { return worth(a) < worth(b); });
    std::optional<unsigned> best;
    double bestRate = 0;
    size_t weighed = 0;
    for (unsigned value : candidates) {
      if (weighed == kWeighed && best)
        break;
      ++weighed;
      kept_.reset(value);
      const BlockModel::Outcome without = model_.simulate(kept_, limit);
      kept_.set(value);
      const double rate = (now.excess - without.excess) / (1 + without.nanoseconds - now.nanoseconds);
      if (rate > bestRate)
        std::tie(best, bestRate) = std::pair(value, rate);
    }
    return best;
  }

  const BlockModel &model_;
  llvm::BitVector kept_;
  llvm::BitVector crossing_;
};

} // namespace

std::vector<llvm::BitVector> selectValues(const BlockModel &model, llvm::BitVector least, int steps) {
  Selection down(model);
  std::vector<llvm::BitVector> selected;
  const int64_t whole = down.peak(), leastPeak = Selection(model, least).peak();
  bool isReached = true;
  for (int step = 1; step < steps; ++step) {
    const int64_t limit = whole / steps * (steps - step);
    isReached = isReached && down.dropTo(limit);
    if (isReached)
      down.keepWhatFits(limit);
    Selection up(model, least);
    if (leastPeak <= limit)
      up.keepWhatFits(limit);
    else if (!isReached)
      break;
    const bool isUp = leastPeak <= limit && (!isReached || up.nanoseconds() < down.nanoseconds());
    selected.push_back(isUp ? up.kept() : down.kept());
  }
  // The fewest that either comes to.
  selected.push_back(down.kept());
  Selection last(model, std::move(least));
  last.keepWhatFits(leastPeak);
  selected.push_back(last.kept());
  return selected;
}

} // namespace gpuc
