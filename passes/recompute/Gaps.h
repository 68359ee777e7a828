//===- Gaps.h - When values live whatever is kept, and when not ------------------===//
//
// A value lives up to its last forward reader; and from its first backward reader to its last, since then it
// or its copy is read. Between those, in its gap, it lives if it is kept. So does, behind its last forward
// reader, what only copies read, as long as one needs it. Where a value takes less if it is dropped, that is
// what counts up to its last forward reader, and its gap reaches up to the last backward one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/recompute/BlockGraph.h"

namespace gpuc {

class Gaps {
public:
  explicit Gaps(const BlockGraph &graph);

  struct Gap {
    unsigned after = 0,
             until = 0; ///< The commands between, both excluded. Without backward readers to the end.
    unsigned first = 0; ///< The first backward reader; the end if there is none.
    unsigned last = 0;  ///< The last one; 0 if there is none.
    bool holds(unsigned time) const { return after < time && time < until; }
  };
  const Gap &of(unsigned value) const { return gaps_[value]; }

  /// Bytes that live while a command runs the first time, whatever is kept, but for those that it may write
  /// over others: no more than it writes, nor than may die there.
  int64_t fixed(unsigned time) const { return fixed_[time]; }
  int64_t mostFixed() const;

private:
  void find();
  std::vector<int64_t> liveAlways() const;
  int64_t overwritten(unsigned time) const;

  const BlockGraph &graph_;
  std::vector<Gap> gaps_;
  std::vector<int64_t> begins_, ends_; ///< Of all values, with all kept; -1: never.
  std::vector<int64_t> fixed_;
};

} // namespace gpuc
