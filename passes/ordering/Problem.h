// What an order of commands is sought for: plain data, as in placement/, of which it is the other half. There
// the times are given and offsets are found; here the times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpuc::ordering {

/// Live from the first command that touches it to the last, both included.
struct Buffer {
  int64_t bytes = 0;
  bool from_start = false;  // live before all commands, too
  bool to_end = false;      // and behind all
};

struct Command {
  std::vector<size_t> buffers;       // that it touches, each once
  std::vector<size_t> predecessors;  // that must come before it: smaller numbers, each once
  int64_t scratch = 0;               // bytes that are live only while it runs
  /// Pairs of a result and an operand, among `buffers`: if the command is the first to touch the result and
  /// the last to touch the operand, the one lies over the other, and both take the bytes of one. Each buffer
  /// is in one such pair at most; those that come first have the first choice.
  std::vector<std::pair<size_t, size_t>> overlays;
};

/// The numbers of the commands are an order that is allowed: the one that is given.
struct Problem {
  std::vector<Buffer> buffers;
  std::vector<Command> commands;
};

using Order = std::vector<size_t>;

/// 0, 1, 2, …
Order givenOrder(const Problem& problem);

/// The most bytes that are live at once, in an order that is allowed; 0 if there are no commands.
int64_t peakOf(const Problem& problem, const Order& order);

/// The part [begin, end) of an order as a problem of its own, whose commands are numbered in that order: what
/// is live before or behind it stays so.
Problem partOf(const Problem& problem, const Order& order, size_t begin, size_t end);

}  // namespace gpuc::ordering
