//===- StackDistance.cpp - How much was touched since a page was ---------------===//

#include "passes/report/StackDistance.h"

#include <algorithm>

namespace gpuc {

/// Twice as many places as pages, so that gaps are closed once in as many touches.
StackDistance::StackDistance(int64_t pages)
    : slots_(pages, kNever), touched_(2 * pages, kNever), sums_(2 * pages + 1) {}

std::optional<int64_t> StackDistance::touch(int64_t page) {
  if (next_ == static_cast<int64_t>(touched_.size()))
    closeGaps();
  std::optional<int64_t> since;
  if (const int64_t slot = slots_[page]; slot != kNever) {
    since = live_ - countUpTo(slot);
    touched_[slot] = kNever;
    add(slot, -1);
  } else {
    ++live_;
  }
  slots_[page] = next_;
  touched_[next_] = page;
  add(next_++, 1);
  return since;
}

void StackDistance::add(int64_t slot, int64_t count) {
  for (int64_t at = slot + 1; at < static_cast<int64_t>(sums_.size()); at += at & -at)
    sums_[at] += count;
}

int64_t StackDistance::countUpTo(int64_t slot) const {
  int64_t count = 0;
  for (int64_t at = slot + 1; at > 0; at -= at & -at)
    count += sums_[at];
  return count;
}

void StackDistance::closeGaps() {
  const auto end = std::remove(touched_.begin(), touched_.end(), kNever);
  next_ = end - touched_.begin();
  std::fill(end, touched_.end(), kNever);
  std::fill(sums_.begin(), sums_.end(), 0);
  for (int64_t slot = 0; slot < next_; ++slot) {
    slots_[touched_[slot]] = slot;
    add(slot, 1);
  }
}

} // namespace gpuc
