#include "passes/ordering/Walk.h"

#include <algorithm>
#include <random>

#include "passes/ordering/Graph.h"

namespace gpuc::ordering {
namespace {

constexpr int kMoves = 300;

/// Whether `second` must come behind `first`.
bool needs(const Problem& problem, size_t second, size_t first) {
  const std::vector<size_t>& predecessors = problem.commands[second].predecessors;
  return std::find(predecessors.begin(), predecessors.end(), first) != predecessors.end();
}

/// Takes a command towards another place, as far as nothing that needs it, or that it needs, is in the way.
void move(const Problem& problem, Order& order, size_t from, size_t to) {
  for (; from < to && !needs(problem, order[from + 1], order[from]); ++from)
    std::swap(order[from], order[from + 1]);
  for (; from > to && !needs(problem, order[from], order[from - 1]); --from)
    std::swap(order[from], order[from - 1]);
}

}  // namespace

Order walk(const Problem& problem, const Order& order, uint64_t seed) {
  if (order.empty()) return order;
  const Graph graph(problem);
  const int64_t peak = mostOf(liveBytes(graph, order));
  std::mt19937_64 random(seed);
  Order best = order;
  for (int moves = 0; moves < kMoves; ++moves) {
    Order next = best;
    const size_t from = random() % next.size(), to = random() % next.size();
    move(problem, next, from, to);
    if (next != best && mostOf(liveBytes(graph, next)) <= peak) best = std::move(next);
  }
  return best;
}

}  // namespace gpuc::ordering
