#include "runtime/base/min_cut.h"

#include <algorithm>
#include <limits>

namespace gpuc {

MinCut::MinCut(size_t nodes) : source_(nodes), sink_(nodes + 1), from_(nodes + 2) {}

void MinCut::addEdge(size_t from, size_t to, int64_t there, int64_t back) {
  from_[from].push_back(edges_.size());
  edges_.push_back({to, there});
  from_[to].push_back(edges_.size());
  edges_.push_back({from, back});
}

// A node on the sink's side is labelled: the edge from the source is cut, and costs what a label does.
void MinCut::addCosts(size_t node, int64_t unlabelled, int64_t labelled) {
  const int64_t common = std::min(unlabelled, labelled);
  addEdge(source_, node, labelled - common, 0);
  addEdge(node, sink_, unlabelled - common, 0);
}

void MinCut::addPair(size_t a, size_t b, int64_t weight) {
  if (a != b) addEdge(a, b, weight, weight);
}

bool MinCut::findLevels() {
  levels_.assign(from_.size(), -1);
  levels_[source_] = 0;
  std::vector<size_t> reached = {source_};
  for (size_t i = 0; i < reached.size(); ++i)
    for (size_t edge : from_[reached[i]])
      if (edges_[edge].room > 0 && levels_[edges_[edge].to] < 0) {
        levels_[edges_[edge].to] = levels_[reached[i]] + 1;
        reached.push_back(edges_[edge].to);
      }
  return levels_[sink_] >= 0;
}

/// Along one way from the source to the sink on which levels rise; the walk is a loop, since it may be as
/// long as there are nodes. Returns how much, 0 if there is no such way any more.
int64_t MinCut::push(int64_t most) {
  std::vector<size_t> way;
  for (size_t node = source_; node != sink_;) {
    size_t& next = next_[node];
    while (next < from_[node].size()) {
      const Edge& edge = edges_[from_[node][next]];
      if (edge.room > 0 && levels_[edge.to] == levels_[node] + 1) break;
      ++next;
    }
    if (next < from_[node].size()) {
      way.push_back(from_[node][next]);
      node = edges_[way.back()].to;
    } else if (way.empty()) {
      return 0;
    } else {  // a dead end: never again by this edge
      node = edges_[way.back() ^ 1].to;
      way.pop_back();
      ++next_[node];
    }
  }
  for (size_t edge : way) most = std::min(most, edges_[edge].room);
  for (size_t edge : way) edges_[edge].room -= most, edges_[edge ^ 1].room += most;
  return most;
}

std::vector<bool> MinCut::solve() {
  while (findLevels()) {
    next_.assign(from_.size(), 0);
    while (push(std::numeric_limits<int64_t>::max()) > 0) {
    }
  }
  // Whom the source does not reach is on the sink's side; those in between could be on either.
  std::vector<bool> reaches(from_.size(), false);
  reaches[sink_] = true;
  std::vector<size_t> open = {sink_};
  for (size_t i = 0; i < open.size(); ++i)
    for (size_t edge : from_[open[i]])
      if (edges_[edge ^ 1].room > 0 && !reaches[edges_[edge].to]) {
        reaches[edges_[edge].to] = true;
        open.push_back(edges_[edge].to);
      }
  reaches.resize(source_);
  return reaches;
}

}  // namespace gpuc
