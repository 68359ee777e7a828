// Depth-first search for an order in which no more than so many bytes are ever live.
#pragma once

#include <optional>
#include <unordered_set>

#include "passes/ordering/Graph.h"

namespace gpuc::ordering {

class Search {
 public:
  explicit Search(const Graph& graph);

  /// Nothing if there is no such order, or, with `effort` spent, if none was found. `most` falls from call to
  /// call: what led to nothing is remembered.
  std::optional<Order> find(int64_t most, Effort& effort);

  /// Whether finding nothing with effort left means that there is nothing.
  bool isExact() const;

 private:
  bool goOn();
  void take(size_t command);
  void takeBack(size_t count);
  bool takeWhatFrees();
  bool takeDown(size_t command);

  static constexpr size_t kLongestWayDown = 16;

  const Graph& graph_;
  State state_;
  std::vector<size_t> ready_;
  Order order_;
  uint64_t hash_ = 0;  // of what is done
  std::unordered_set<uint64_t> dead_ends_;
  int64_t most_ = 0;
  Effort* effort_ = nullptr;
};

}  // namespace gpuc::ordering
