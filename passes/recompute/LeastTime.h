//===- LeastTime.h - What a limit on memory costs at the least ------------------===//
//
// A bound that no choice can go below, as far as BlockGraph tells what a choice costs.
//
// Let t be a command of the block, while it runs the first time, and fixed(t) the bytes that live then
// whatever is kept (Gaps.h). A value with t in its gap lives if it is kept and somebody still needs it: a
// backward reader behind t, or the copy of an op that reads it. The latter stands behind t for sure if no
// backward command up to t could ask for it, through whatever values are dropped. So each choice within the
// limit has
//
//   (1) the sum of the bytes of kept values with t in their gap, which are needed still  <=  limit - fixed(t)
//   (2) for each dropped value that is needed the op that computes it run again, and so what that reads
//   needed
//
// and its time is the sum over the ops that run again. Relaxed à la Lagrange, with a price for a byte at each
// t,
//
//   least over the choices with (2) of: time + sum over t of price(t) * (bytes of (1) + fixed(t) - limit)
//
// is at most the time of any choice that (1) holds for, whatever the prices are, as long as none is negative.
// The least is a minimum cut: an op runs again, or not; a value that is needed costs its bytes times the
// prices of its gap if the op behind it does not. What is left out can only make choices dearer: copies live
// as well, and commands that run again have peaks of their own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/recompute/Gaps.h"

#include <optional>

namespace gpuc {

class LeastTime {
public:
  explicit LeastTime(const BlockGraph &graph);

  const Gaps &gaps() const { return gaps_; }

  /// The time of all that could run again.
  double total() const { return total_; }

  /// What is decided of a value. Of values that no command needs in the end either is as good.
  enum class Choice : uint8_t { open, kept, dropped };
  using Choices = llvm::ArrayRef<Choice>; ///< Empty: all are open.

  /// Prices of a byte, each for a command.
  using Prices = std::vector<std::pair<unsigned, double>>;

  struct Bound {
    double nanoseconds = 0;  ///< Infinite: there is no such choice.
    llvm::BitVector kept;    ///< The choice that it comes from; rarely within the limit itself.
    std::vector<double> use; ///< Its bytes (1) for each command.
    int64_t effort = 0;      ///< Commands and values that were looked at.
  };
  Bound at(const Prices &prices, int64_t limit, Choices choices = {}) const;

  struct Priced {
    double nanoseconds = 0;
    Prices prices; ///< For which `at` gives just that.
    llvm::BitVector kept;
    int64_t effort = 0;
  };
  /// The best bound of those with a price for one command, which is one of the so many with the least room.
  Priced within(int64_t limit, unsigned commands = 3) const;

  /// Betters the prices, all commands at once, in so many steps. `reached` is the time of some choice.
  Priced improved(Priced priced, int64_t limit, double reached, int steps) const;

private:
  /// Of a value that an op reads which may run again.
  struct Need {
    unsigned op = 0;
    unsigned until = 0; ///< The first command for which it could.
  };
  class Cut;

  void findNeeds();
  std::vector<unsigned> firstDemands() const;
  double estimate(unsigned time, int64_t limit) const;
  std::vector<unsigned> tightest(int64_t limit, unsigned most) const;
  Priced bestPrice(unsigned time, int64_t limit) const;

  const BlockGraph &graph_;
  const Gaps gaps_;
  std::vector<llvm::SmallVector<Need, 2>> needs_; ///< Of values without such, in the order of `until`.
  std::vector<unsigned> cheapestFirst_; ///< The values that backward commands read, by time for a byte.
  double total_ = 0;
};

} // namespace gpuc
