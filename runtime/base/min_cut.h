// The cheapest way to give each of many things one of two labels, where some dislike to differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuc {

/// Σ cost of each node's label + Σ weight of each pair whose labels differ, in one way or in either, is made
/// least: a minimum cut between two terminals (Greig, Porteous and Seheult 1989), found by Dinic's algorithm
/// (1970). Costs and weights are at least 0 and below 2^40. Memory is linear in the nodes and in the pairs
/// that differ.
class MinCut {
 public:
  explicit MinCut(std::size_t nodes);

  void addCosts(std::size_t node, int64_t unlabelled, int64_t labelled);
  void addPair(std::size_t a, std::size_t b, int64_t weight);
  /// What it costs if `a` is labelled and `b` is not.
  void addDemand(std::size_t a, std::size_t b, int64_t weight);

  /// For each node whether it is labelled. Of several cheapest ways the one that labels fewest.
  std::vector<bool> solve();

 private:
  struct Cost {
    int64_t unlabelled = 0, labelled = 0;
  };
  struct Pair {
    std::size_t a, b;     // a < b
    int64_t there, back;  // if b alone is labelled, and if a is
  };
  struct Edge {
    std::size_t to;
    int64_t room;
  };

  void add(const Pair& pair);
  void mergePairs();
  void addEdges();
  void addEdge(std::size_t from, std::size_t to, int64_t there, int64_t back);
  std::size_t degree(std::size_t node) const { return first_[node + 1] - first_[node]; }
  bool findLevels();
  int64_t push(int64_t most);

  std::size_t source_, sink_;              // of who is not labelled, and who is
  std::vector<Cost> costs_;                // of each node
  std::vector<Pair> pairs_;                // the first of which differ, in order
  std::size_t merged_pairs_ = 0;           // so many of them
  std::vector<Edge> edges_;                // each followed by its reverse
  std::vector<std::size_t> first_, from_;  // edges of node n: from_[first_[n]] to from_[first_[n + 1] - 1]
  std::vector<int> levels_;                // edges from the source, -1: out of reach
  std::vector<std::size_t> next_;          // of each node, the first edge that is not used up
};

}  // namespace gpuc
