#include "passes/ordering/Graph.h"

#include <algorithm>

namespace gpuc::ordering {

Graph::Graph(const Problem& problem, bool is_backward)
    : is_backward(is_backward),
      buffers(problem.buffers),
      users(buffers.size()),
      commands(problem.commands),
      successors(commands.size()) {
  if (is_backward) {
    std::reverse(commands.begin(), commands.end());
    for (Buffer& buffer : buffers) std::swap(buffer.from_start, buffer.to_end);
    std::vector<std::vector<size_t>> predecessors(size());
    for (size_t command = 0; command < size(); ++command)
      for (size_t before : commands[command].predecessors)
        predecessors[size() - 1 - before].push_back(command);
    for (size_t command = 0; command < size(); ++command) {
      commands[command].predecessors = std::move(predecessors[command]);
      for (auto& [result, operand] : commands[command].overlays) std::swap(result, operand);
    }
  }
  for (size_t command = 0; command < size(); ++command) {
    for (size_t buffer : commands[command].buffers) users[buffer].push_back(command);
    for (size_t before : commands[command].predecessors) successors[before].push_back(command);
  }
}

Order Graph::turned(Order order) const {
  if (!is_backward) return order;
  std::reverse(order.begin(), order.end());
  for (size_t& command : order) command = size() - 1 - command;
  return order;
}

State::State(const Graph& graph) : graph_(graph), done_(graph.size()) {
  for (size_t buffer = 0; buffer < graph.buffers.size(); ++buffer) {
    users_left_.push_back(graph.users[buffer].size());
    if (graph.buffers[buffer].from_start) live_ += graph.buffers[buffer].bytes;
  }
  for (const Command& command : graph.commands) waits_for_.push_back(command.predecessors.size());
}

bool State::isUntouched(size_t buffer) const {
  return users_left_[buffer] == graph_.users[buffer].size() && !graph_.buffers[buffer].from_start;
}

bool State::hasOneUserLeft(size_t buffer) const {
  return users_left_[buffer] == 1 && !graph_.buffers[buffer].to_end;
}

int64_t State::overlaid(const Command& command) const {
  int64_t bytes = 0;
  std::vector<size_t> taken;
  auto isFree = [&](size_t buffer) { return std::find(taken.begin(), taken.end(), buffer) == taken.end(); };
  for (auto [result, operand] : command.overlays)
    if (isUntouched(result) && hasOneUserLeft(operand) && isFree(result) && isFree(operand)) {
      taken.insert(taken.end(), {result, operand});
      bytes += graph_.buffers[result].bytes;
    }
  return bytes;
}

int64_t State::bytesDuring(size_t command) const {
  const Command& next = graph_.commands[command];
  int64_t bytes = live_ + next.scratch;
  for (size_t buffer : next.buffers)
    if (isUntouched(buffer)) bytes += graph_.buffers[buffer].bytes;
  return next.overlays.empty() ? bytes : bytes - overlaid(next);
}

int64_t State::growthBy(size_t command) const {
  int64_t bytes = 0;
  for (size_t buffer : graph_.commands[command].buffers) {
    if (isUntouched(buffer)) bytes += graph_.buffers[buffer].bytes;
    if (hasOneUserLeft(buffer)) bytes -= graph_.buffers[buffer].bytes;
  }
  return bytes;
}

void State::take(size_t command) {
  live_ += growthBy(command);
  for (size_t buffer : graph_.commands[command].buffers) --users_left_[buffer];
  for (size_t next : graph_.successors[command]) --waits_for_[next];
  done_[command] = true;
}

void State::takeBack(size_t command) {
  done_[command] = false;
  for (size_t next : graph_.successors[command]) ++waits_for_[next];
  for (size_t buffer : graph_.commands[command].buffers) ++users_left_[buffer];
  live_ -= growthBy(command);
}

std::vector<int64_t> liveBytes(const Graph& graph, const Order& order) {
  State state(graph);
  std::vector<int64_t> bytes;
  for (size_t command : order) {
    bytes.push_back(state.bytesDuring(command));
    state.take(command);
  }
  return bytes;
}

int64_t mostOf(const std::vector<int64_t>& bytes) {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace gpuc::ordering
