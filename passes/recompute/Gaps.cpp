//===- Gaps.cpp - When values live whatever is kept, and when not ----------------===//

#include "passes/recompute/Gaps.h"

#include "llvm/ADT/STLExtras.h"

namespace gpuc {

Gaps::Gaps(const BlockGraph &graph)
    : graph_(graph), gaps_(graph.size()), begins_(graph.allBytes().size(), -1),
      ends_(graph.allBytes().size(), -1) {
  find();
  fixed_ = liveAlways();
  for (unsigned time = 0; time < fixed_.size(); ++time)
    fixed_[time] -= overwritten(time);
}

int64_t Gaps::mostFixed() const {
  return fixed_.empty() ? 0 : *std::max_element(fixed_.begin(), fixed_.end());
}

void Gaps::find() {
  for (Gap &gap : gaps_)
    gap.first = graph_.ops().size();
  for (auto [time, op] : llvm::enumerate(graph_.ops())) {
    for (unsigned value : op.writes) {
      begins_[value] = ends_[value] = time;
      if (value < gaps_.size())
        gaps_[value].after = time;
    }
    for (unsigned value : op.reads) {
      ends_[value] = time;
      if (value < gaps_.size() && !op.backward)
        gaps_[value].after = time;
      else if (value < gaps_.size()) {
        gaps_[value].first = std::min<unsigned>(gaps_[value].first, time);
        gaps_[value].last = time;
      }
    }
  }
  for (auto [value, gap] : llvm::enumerate(gaps_)) {
    const bool isLessAgain = gap.last > 0 && graph_.bytesAgain(value) < graph_.bytes(value);
    gap.until = isLessAgain ? gap.last + 1 : gap.first;
  }
}

std::vector<int64_t> Gaps::liveAlways() const {
  std::vector<int64_t> live(graph_.ops().size() + 1);
  auto add = [&](unsigned value, int64_t first, int64_t last) {
    const int64_t bytes = value < gaps_.size() ? std::min(graph_.bytes(value), graph_.bytesAgain(value))
                                               : graph_.allBytes()[value];
    live[first] += bytes;
    live[last + 1] -= bytes;
  };
  for (unsigned value = 0; value < begins_.size(); ++value) {
    if (begins_[value] < 0)
      continue;
    const bool hasGap = value < gaps_.size() && gaps_[value].after < gaps_[value].until;
    add(value, begins_[value], hasGap ? gaps_[value].after : ends_[value]);
    if (hasGap && graph_.isResidual(value))
      add(value, gaps_[value].until, ends_[value]);
  }
  for (size_t time = 1; time < live.size(); ++time)
    live[time] += live[time - 1];
  live.pop_back();
  return live;
}

int64_t Gaps::overwritten(unsigned time) const {
  const BlockGraph::Op &op = graph_.ops()[time];
  if (!op.mayOverwrite)
    return 0;
  auto bytesThatMayDie = [&](unsigned value) {
    const bool isLastOfPass =
        value < gaps_.size() && (gaps_[value].after == time || gaps_[value].last == time);
    return (isLastOfPass || ends_[value] == time) && begins_[value] >= 0 ? graph_.allBytes()[value] : 0;
  };
  int64_t written = 0, dying = 0;
  for (unsigned value : op.writes) {
    written += graph_.allBytes()[value];
    dying += bytesThatMayDie(value);
  }
  for (unsigned value : op.reads)
    dying += bytesThatMayDie(value);
  return std::min(written, dying);
}

} // namespace gpuc
