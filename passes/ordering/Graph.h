// The solvers' view of a problem, from its beginning or from its end, and how far an order has come in it.
#pragma once

#include "passes/ordering/Problem.h"

namespace gpuc::ordering {

/// What a solver may still do, counted by the commands that it looks at: below 1 it ends.
using Effort = int64_t;

/// A problem with what must follow a command, too. Backward, command i is the problem's last but i: orders
/// are those of the problem from behind, with the same bytes live.
struct Graph {
  explicit Graph(const Problem& problem, bool is_backward = false);

  size_t size() const { return commands.size(); }

  /// An order of the graph as one of the problem; or the other way around.
  Order turned(Order order) const;

  bool is_backward;
  std::vector<Buffer> buffers;
  std::vector<std::vector<size_t>> users;  // of each buffer, rising
  std::vector<Command> commands;
  std::vector<std::vector<size_t>> successors;
};

/// The bytes that are live while each command runs, in the order's turn; and the most of them, 0 if there are
/// none.
std::vector<int64_t> liveBytes(const Graph& graph, const Order& order);
int64_t mostOf(const std::vector<int64_t>& bytes);

/// Some of the commands have run.
class State {
 public:
  explicit State(const Graph& graph);

  bool isReady(size_t command) const { return waits_for_[command] == 0; }
  bool isDone(size_t command) const { return done_[command]; }

  /// What is live between two commands; while this one runs, if it came next; and how much more would be
  /// behind it.
  int64_t live() const { return live_; }
  int64_t bytesDuring(size_t command) const;
  int64_t growthBy(size_t command) const;

  /// Whether none of its commands has run, or all but one.
  bool isUntouched(size_t buffer) const;
  bool hasOneUserLeft(size_t buffer) const;

  /// The command, which is ready, comes next; the one that came last did not.
  void take(size_t command);
  void takeBack(size_t command);

 private:
  int64_t overlaid(const Command& command) const;

  const Graph& graph_;
  std::vector<size_t> users_left_;  // of each buffer
  std::vector<size_t> waits_for_;   // predecessors that have not run
  std::vector<char> done_;
  int64_t live_ = 0;
};

}  // namespace gpuc::ordering
