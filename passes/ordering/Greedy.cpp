#include "passes/ordering/Greedy.h"

#include <algorithm>
#include <set>

namespace gpuc::ordering {
namespace {

class Scheduler {
 public:
  Scheduler(const Graph& graph, Choice choice)
      : graph_(graph), choice_(choice), state_(graph), keys_(graph.size()) {}

  Order run() {
    for (size_t command = 0; command < graph_.size(); ++command)
      if (state_.isReady(command)) insert(command);
    Order order;
    while (!ready_.empty()) {
      const size_t command = ready_.begin()->second;
      ready_.erase(ready_.begin());
      take(command);
      order.push_back(command);
    }
    return order;
  }

 private:
  int64_t keyOf(size_t command) const {
    const int64_t growth = state_.growthBy(command);
    return choice_ == Choice::frees_most ? std::min<int64_t>(growth, 0) : growth;
  }

  void insert(size_t command) {
    keys_[command] = keyOf(command);
    ready_.emplace(keys_[command], command);
  }

  /// Only by the first use of a buffer, and the last but one, does another's growth change.
  void take(size_t command) {
    std::vector<size_t> changed;
    for (size_t buffer : graph_.commands[command].buffers)
      if (state_.isUntouched(buffer)) changed.push_back(buffer);
    state_.take(command);
    for (size_t buffer : graph_.commands[command].buffers)
      if (state_.hasOneUserLeft(buffer)) changed.push_back(buffer);
    for (size_t buffer : changed)
      for (size_t user : graph_.users[buffer]) update(user);
    for (size_t next : graph_.successors[command])
      if (state_.isReady(next)) insert(next);
  }

  void update(size_t command) {
    if (ready_.erase({keys_[command], command})) insert(command);
  }

  const Graph& graph_;
  const Choice choice_;
  State state_;
  std::vector<int64_t> keys_;                   // of those that are ready
  std::set<std::pair<int64_t, size_t>> ready_;  // by their keys
};

}  // namespace

Order scheduleGreedily(const Graph& graph, Choice choice) {
  return graph.turned(Scheduler(graph, choice).run());
}

}  // namespace gpuc::ordering
