#include "passes/ordering/Problem.h"

#include <algorithm>
#include <numeric>

#include "passes/ordering/Graph.h"

namespace gpuc::ordering {

Order givenOrder(const Problem& problem) {
  Order order(problem.commands.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

int64_t peakOf(const Problem& problem, const Order& order) {
  return mostOf(liveBytes(Graph(problem), order));
}

namespace {

constexpr size_t kElsewhere = SIZE_MAX;

/// Numbers of what is in the part, by numbers of the whole.
struct Numbers {
  std::vector<size_t> commands, buffers;
};

/// Of each buffer its place in the part; what the part does not touch, but is live in all of it, is one that
/// no command touches.
Numbers addBuffers(const Problem& problem, const Order& order, size_t begin, size_t end, Problem& part) {
  Numbers numbers = {std::vector<size_t>(problem.commands.size(), kElsewhere),
                     std::vector<size_t>(problem.buffers.size(), kElsewhere)};
  for (size_t at = begin; at < end; ++at) {
    numbers.commands[order[at]] = at - begin;
    for (size_t buffer : problem.commands[order[at]].buffers)
      if (numbers.buffers[buffer] == kElsewhere) {
        numbers.buffers[buffer] = part.buffers.size();
        part.buffers.push_back(problem.buffers[buffer]);
      }
  }
  std::vector<char> before(problem.buffers.size()), behind(problem.buffers.size());
  for (size_t at = 0; at < order.size(); ++at)
    if (at < begin || at >= end)
      for (size_t buffer : problem.commands[order[at]].buffers) (at < begin ? before : behind)[buffer] = true;

  int64_t throughout = 0;
  for (size_t buffer = 0; buffer < problem.buffers.size(); ++buffer) {
    const Buffer& whole = problem.buffers[buffer];
    const bool from_start = whole.from_start || before[buffer], to_end = whole.to_end || behind[buffer];
    if (numbers.buffers[buffer] == kElsewhere) {
      throughout += from_start && to_end ? whole.bytes : 0;
    } else {
      part.buffers[numbers.buffers[buffer]].from_start = from_start;
      part.buffers[numbers.buffers[buffer]].to_end = to_end;
    }
  }
  part.buffers.push_back({throughout, true, true});
  return numbers;
}

}  // namespace

Problem partOf(const Problem& problem, const Order& order, size_t begin, size_t end) {
  Problem part;
  const Numbers numbers = addBuffers(problem, order, begin, end, part);
  for (size_t at = begin; at < end; ++at) {
    const Command& whole = problem.commands[order[at]];
    Command& command = part.commands.emplace_back();
    command.scratch = whole.scratch;
    for (size_t buffer : whole.buffers) command.buffers.push_back(numbers.buffers[buffer]);
    for (size_t predecessor : whole.predecessors)
      if (numbers.commands[predecessor] != kElsewhere)
        command.predecessors.push_back(numbers.commands[predecessor]);
    for (auto [result, operand] : whole.overlays)
      command.overlays.emplace_back(numbers.buffers[result], numbers.buffers[operand]);
  }
  return part;
}

}  // namespace gpuc::ordering
