#include "passes/ordering/Cut.h"

#include <algorithm>
#include <limits>

namespace gpuc::ordering {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max() / 4;

/// A network and the most that flows through it, by Dinic's method.
class Network {
 public:
  static constexpr size_t kSource = 0, kSink = 1;

  size_t addNode() {
    edges_of_.emplace_back();
    return edges_of_.size() - 1;
  }

  void addEdge(size_t from, size_t to, int64_t capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  /// Nothing if the effort did not suffice.
  std::optional<int64_t> maximumFlow(Effort& effort) {
    int64_t flow = 0;
    while (findLevels(effort)) {
      next_.assign(edges_of_.size(), 0);
      while (const int64_t more = push(effort)) flow += more;
      if (effort <= 0) return std::nullopt;
    }
    return flow;
  }

  /// Of the least cut, behind maximumFlow(), whether the node is on the source's side: as few are as can be.
  bool isBefore(size_t node) const { return level_[node] >= 0; }

 private:
  struct Edge {
    size_t to;
    int64_t left;
  };

  bool findLevels(Effort& effort) {
    level_.assign(edges_of_.size(), -1);
    level_[kSource] = 0;
    std::vector<size_t> queue = {kSource};
    for (size_t at = 0; at < queue.size(); ++at)
      for (size_t index : edges_of_[queue[at]])
        if (const Edge& edge = edges_[index]; edge.left > 0 && level_[edge.to] < 0) {
          level_[edge.to] = level_[queue[at]] + 1;
          queue.push_back(edge.to);
        }
    effort -= static_cast<Effort>(queue.size());
    return level_[kSink] >= 0;
  }

  /// One way from source to sink with what flows on it, without recursion: ways are as long as programs.
  int64_t push(Effort& effort) {
    std::vector<size_t> way;
    size_t node = kSource;
    while (node != kSink) {
      if (--effort <= 0) return 0;
      if (const size_t* index = nextEdge(node)) {
        way.push_back(*index);
        node = edges_[*index].to;
        continue;
      }
      if (way.empty()) return 0;
      node = edges_[way.back() ^ 1].to;
      way.pop_back();
      ++next_[node];
    }
    int64_t flow = kAll;
    for (size_t index : way) flow = std::min(flow, edges_[index].left);
    for (size_t index : way) {
      edges_[index].left -= flow;
      edges_[index ^ 1].left += flow;
    }
    return flow;
  }

  const size_t* nextEdge(size_t node) {
    for (size_t& at = next_[node]; at < edges_of_[node].size(); ++at) {
      const Edge& edge = edges_[edges_of_[node][at]];
      if (edge.left > 0 && level_[edge.to] == level_[node] + 1) return &edges_of_[node][at];
    }
    return nullptr;
  }

  std::vector<std::vector<size_t>> edges_of_ = {{}, {}};
  std::vector<Edge> edges_;  // each beside the one that takes it back
  std::vector<int> level_;
  std::vector<size_t> next_;
};

enum class Side : char { open, before, behind };

class LeastCut {
 public:
  LeastCut(const Graph& graph, size_t command)
      : graph_(graph), command_(command), sides_(graph.size(), Side::open), nodes_(graph.size()) {}

  std::optional<Cut> run(Effort& effort) {
    effort -= static_cast<Effort>(graph_.size());
    settle();
    addCommands();
    int64_t bytes = graph_.commands[command_].scratch;
    std::vector<char> is_touched(graph_.buffers.size());
    for (size_t buffer : graph_.commands[command_].buffers) {
      is_touched[buffer] = true;
      bytes += graph_.buffers[buffer].bytes;
    }
    for (size_t buffer = 0; buffer < graph_.buffers.size(); ++buffer)
      if (!is_touched[buffer]) bytes += addBuffer(buffer);
    bytes -= overlay();
    const std::optional<int64_t> flow = network_.maximumFlow(effort);
    if (!flow) return std::nullopt;
    Cut cut = {bytes + *flow, {}};
    for (size_t other = 0; other < graph_.size(); ++other)
      cut.before.push_back(sides_[other] == Side::before ||
                           (sides_[other] == Side::open && network_.isBefore(nodes_[other])));
    return cut;
  }

 private:
  /// What the command must follow comes before it, what must follow it behind.
  void settle() {
    spread(Side::before, [&](size_t at) -> auto& { return graph_.commands[at].predecessors; });
    spread(Side::behind, [&](size_t at) -> auto& { return graph_.successors[at]; });
    sides_[command_] = Side::behind;
  }

  template <typename Next>
  void spread(Side side, Next next) {
    std::vector<size_t> reached = {command_};
    for (size_t at = 0; at < reached.size(); ++at)
      for (size_t other : next(reached[at]))
        if (sides_[other] == Side::open) {
          sides_[other] = side;
          reached.push_back(other);
        }
  }

  void addCommands() {
    for (size_t command = 0; command < graph_.size(); ++command) {
      if (sides_[command] != Side::open) continue;
      nodes_[command] = network_.addNode();
      for (size_t before : graph_.commands[command].predecessors)
        if (sides_[before] == Side::open) network_.addEdge(nodes_[command], nodes_[before], kAll);
    }
  }

  /// Which sides a buffer is needed on, whatever is chosen; the command itself is left out.
  struct Needs {
    bool before, behind, is_open;
  };

  Needs needsOf(size_t buffer) const {
    Needs needs = {graph_.buffers[buffer].from_start, graph_.buffers[buffer].to_end, false};
    for (size_t user : graph_.users[buffer]) {
      if (user == command_) continue;
      needs.before |= sides_[user] == Side::before;
      needs.behind |= sides_[user] == Side::behind;
      needs.is_open |= sides_[user] == Side::open;
    }
    return needs;
  }

  /// Bytes that are live whatever is chosen; those that are not are an edge, cut if some users come before
  /// and some behind.
  int64_t addBuffer(size_t buffer) {
    const int64_t bytes = graph_.buffers[buffer].bytes;
    const Needs needs = needsOf(buffer);
    if (needs.before && needs.behind) return bytes;
    if (bytes == 0 || !needs.is_open) return 0;
    const size_t first = needs.before ? Network::kSource : network_.addNode(),
                 last = needs.behind ? Network::kSink : network_.addNode();
    network_.addEdge(first, last, bytes);
    for (size_t user : graph_.users[buffer]) {
      if (sides_[user] != Side::open) continue;
      if (!needs.before) network_.addEdge(nodes_[user], first, kAll);
      if (!needs.behind) network_.addEdge(last, nodes_[user], kAll);
    }
    return 0;
  }

  /// The most that the command's results can share with its operands.
  int64_t overlay() const {
    int64_t bytes = 0;
    std::vector<size_t> taken;
    auto isFree = [&](size_t buffer) { return std::find(taken.begin(), taken.end(), buffer) == taken.end(); };
    for (auto [result, operand] : graph_.commands[command_].overlays)
      if (!needsOf(result).before && !needsOf(operand).behind && isFree(result)) {
        taken.push_back(result);
        bytes += graph_.buffers[result].bytes;
      }
    return bytes;
  }

  const Graph& graph_;
  const size_t command_;
  std::vector<Side> sides_;
  std::vector<size_t> nodes_;  // of those whose side is open
  Network network_;
};

}  // namespace

std::optional<Cut> leastCut(const Graph& graph, size_t command, Effort& effort) {
  return LeastCut(graph, command).run(effort);
}

}  // namespace gpuc::ordering
