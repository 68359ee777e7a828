#include "runtime/base/min_cut.h"

#include <algorithm>
#include <limits>

namespace gpuc {

MinCut::MinCut(size_t nodes) : source_(nodes), sink_(nodes + 1), costs_(nodes) {}

void MinCut::addCosts(size_t node, int64_t unlabelled, int64_t labelled) {
  costs_[node].unlabelled += unlabelled;
  costs_[node].labelled += labelled;
}

void MinCut::addPair(size_t a, size_t b, int64_t weight) {
  add({std::min(a, b), std::max(a, b), weight, weight});
}

void MinCut::addDemand(size_t a, size_t b, int64_t weight) {
  add(a < b ? Pair{a, b, 0, weight} : Pair{b, a, weight, 0});
}

void MinCut::add(const Pair& pair) {
  if (pair.a == pair.b) return;
  constexpr size_t kFew = 4096;
  if (pairs_.size() >= 2 * merged_pairs_ + kFew) mergePairs();
  pairs_.push_back(pair);
}

void MinCut::mergePairs() {
  std::sort(pairs_.begin(), pairs_.end(),
            [](const Pair& x, const Pair& y) { return x.a != y.a ? x.a < y.a : x.b < y.b; });
  size_t kept = 0;
  for (const Pair& pair : pairs_)
    if (kept > 0 && pairs_[kept - 1].a == pair.a && pairs_[kept - 1].b == pair.b)
      pairs_[kept - 1].there += pair.there, pairs_[kept - 1].back += pair.back;
    else
      pairs_[kept++] = pair;
  pairs_.resize(kept);
  merged_pairs_ = kept;
}

void MinCut::addEdge(size_t from, size_t to, int64_t there, int64_t back) {
  edges_.push_back({to, there});
  edges_.push_back({from, back});
}

void MinCut::addEdges() {
  mergePairs();
  edges_.reserve(2 * (pairs_.size() + costs_.size()));
  // A node on the sink's side is labelled: the edge from the source is cut, and costs what a label does.
  for (size_t node = 0; node < costs_.size(); ++node)
    if (const int64_t more = costs_[node].labelled - costs_[node].unlabelled; more >= 0)
      addEdge(source_, node, more, 0);
    else
      addEdge(node, sink_, -more, 0);
  for (const Pair& pair : pairs_) addEdge(pair.a, pair.b, pair.there, pair.back);
  first_.assign(sink_ + 2, 0);
  for (size_t edge = 0; edge < edges_.size(); ++edge) ++first_[edges_[edge ^ 1].to + 1];
  for (size_t node = 0; node <= sink_; ++node) first_[node + 1] += first_[node];
  from_.resize(edges_.size());
  std::vector<size_t> filled(first_.begin(), first_.end() - 1);
  for (size_t edge = 0; edge < edges_.size(); ++edge) from_[filled[edges_[edge ^ 1].to]++] = edge;
}

bool MinCut::findLevels() {
  levels_.assign(sink_ + 1, -1);
  levels_[source_] = 0;
  std::vector<size_t> reached = {source_};
  for (size_t i = 0; i < reached.size(); ++i)
    for (size_t at = first_[reached[i]]; at < first_[reached[i] + 1]; ++at)
      if (const Edge& edge = edges_[from_[at]]; edge.room > 0 && levels_[edge.to] < 0) {
        levels_[edge.to] = levels_[reached[i]] + 1;
        reached.push_back(edge.to);
      }
  return levels_[sink_] >= 0;
}

/// Along one path from the source to the sink on which levels rise; the walk is a loop, since it may be as
/// long as there are nodes. Returns how much, 0 if there is no such path any more.
int64_t MinCut::push(int64_t most) {
  std::vector<size_t> path;
  for (size_t node = source_; node != sink_;) {
    size_t& next = next_[node];
    while (next < degree(node)) {
      const Edge& edge = edges_[from_[first_[node] + next]];
      if (edge.room > 0 && levels_[edge.to] == levels_[node] + 1) break;
      ++next;
    }
    if (next < degree(node)) {
      path.push_back(from_[first_[node] + next]);
      node = edges_[path.back()].to;
    } else if (path.empty()) {
      return 0;
    } else {  // a dead end: never again by this edge
      node = edges_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[node];
    }
  }
  for (size_t edge : path) most = std::min(most, edges_[edge].room);
  for (size_t edge : path) edges_[edge].room -= most, edges_[edge ^ 1].room += most;
  return most;
}

std::vector<bool> MinCut::solve() {
  addEdges();
  while (findLevels()) {
    next_.assign(sink_ + 1, 0);
    while (push(std::numeric_limits<int64_t>::max()) > 0) {
    }
  }
  // Whom the source does not reach is on the sink's side; those in between could be on either.
  std::vector<bool> reaches(sink_ + 1, false);
  reaches[sink_] = true;
  std::vector<size_t> open = {sink_};
  for (size_t i = 0; i < open.size(); ++i)
    for (size_t at = first_[open[i]]; at < first_[open[i] + 1]; ++at) {
      const size_t edge = from_[at], to = edges_[edge].to;
      if (edges_[edge ^ 1].room > 0 && !reaches[to]) {
        reaches[to] = true;
        open.push_back(to);
      }
    }
  reaches.resize(source_);
  return reaches;
}

}  // namespace gpuc
