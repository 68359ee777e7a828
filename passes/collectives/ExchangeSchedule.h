//===- ExchangeSchedule.h - When commands and sums over ranks take their turn ---===//
#pragma once

#include "passes/collectives/Buckets.h"

#include <optional>

namespace gpuc {

/// A program as far as exchanges go: commands in an order that respects what depends on what.
struct ExchangeProblem {
  struct Command {
    double nanoseconds = 0;           ///< That it computes; of an exchange nothing.
    std::vector<size_t> predecessors; ///< Sorted.
    std::optional<Exchange> exchange; ///< Of a sum over ranks; `ready` is not known yet.
  };
  std::vector<Command> commands;
};

/// How exchanges are made.
struct ExchangeWay {
  bool beside = false;                     ///< Of the commands that compute, or in turn with them.
  std::optional<int64_t> bucketBytes = {}; ///< At most; none: what suits the link.
  /// Beside: at most where it is the link that suggests a size, so that not all is live at once.
  int64_t mostBytes = std::numeric_limits<int64_t>::max();
  double worthFewer = kSlack;    ///< Beside: the share of its time that fewer exchanges are worth.
  double handoffNanoseconds = 0; ///< Beside: what it takes a stream to hand on to the other one.
};

struct ExchangeSchedule {
  /// What takes its turn: one command, or the exchanges of a bucket, in the order in which they are ready.
  using Turn = std::vector<size_t>;

  std::vector<Turn> turns;
  double nanoseconds = 0; ///< Until all is done, by prediction.
};

/// What needs no sum keeps its order, but that beside it the parts of sums come first that take the least to
/// compute, as the gradient of the last layer's weight does. Each bucket takes its turn when the last of its
/// parts is computed; what waits for sums does when these are there, by prediction, and so consumes gradients
/// as early as it can without holding up what is left of the backward pass.
ExchangeSchedule scheduleExchanges(const ExchangeProblem &problem, const Link &link, const ExchangeWay &way);

} // namespace gpuc
