#include "passes/ordering/Search.h"

#include <algorithm>

namespace gpuc::ordering {

Search::Search(const Graph& graph) : graph_(graph), state_(graph) {
  for (size_t command = 0; command < graph.size(); ++command)
    if (state_.isReady(command)) ready_.push_back(command);
}

std::optional<Order> Search::find(int64_t most, Effort& effort) {
  most_ = most;
  effort_ = &effort;
  if (!goOn()) return std::nullopt;
  Order order = order_;
  takeBack(order_.size());
  return graph_.turned(std::move(order));
}

/// From behind, a command that is taken forward may touch the operand that another's result would lie over.
bool Search::isExact() const {
  auto isAlone = [&](auto overlay) { return graph_.users[overlay.first].size() == 1; };
  return !graph_.is_backward ||
         std::all_of(graph_.commands.begin(), graph_.commands.end(), [&](const Command& command) {
           return std::all_of(command.overlays.begin(), command.overlays.end(), isAlone);
         });
}

/// A number for each command by which sets of them have numbers that do not collide in practice: splitmix64.
static uint64_t hashOf(size_t command) {
  uint64_t bits = (static_cast<uint64_t>(command) + 1) * 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

void Search::take(size_t command) {
  ready_.erase(std::find(ready_.begin(), ready_.end(), command));
  state_.take(command);
  for (size_t next : graph_.successors[command])
    if (state_.isReady(next)) ready_.push_back(next);
  order_.push_back(command);
  hash_ ^= hashOf(command);
}

void Search::takeBack(size_t count) {
  for (; count > 0; --count) {
    const size_t command = order_.back();
    order_.pop_back();
    for (size_t next : graph_.successors[command])
      if (state_.isReady(next)) ready_.erase(std::find(ready_.begin(), ready_.end(), next));
    state_.takeBack(command);
    ready_.push_back(command);
    hash_ ^= hashOf(command);
  }
}

/// Commands of which each must follow the one before it, and behind which no more is live than there is, can
/// come next, if there is room for them: in any order that goes on from here they can be taken forward to
/// this place, and nothing grows. (Live bytes are submodular in what is done, and behind each of them but the
/// last more is live.)
bool Search::takeWhatFrees() {
  const std::vector<size_t> ready = ready_;
  return std::any_of(ready.begin(), ready.end(), [&](size_t command) { return takeDown(command); });
}

bool Search::takeDown(size_t command) {
  const size_t begin = order_.size();
  const int64_t live = state_.live();
  for (size_t length = 1; length <= kLongestWayDown; ++length) {
    --*effort_;
    if (state_.bytesDuring(command) > most_) break;
    take(command);
    if (state_.live() <= live) return true;
    const std::vector<size_t>& successors = graph_.successors[command];
    const auto next =
        std::find_if(successors.begin(), successors.end(), [&](size_t next) { return state_.isReady(next); });
    if (next == successors.end()) break;
    command = *next;
  }
  takeBack(order_.size() - begin);
  return false;
}

bool Search::goOn() {
  const size_t begin = order_.size();
  while (takeWhatFrees()) {
  }
  if (order_.size() == graph_.size()) return true;
  const uint64_t here = hash_;
  if (*effort_ > 0 && dead_ends_.insert(here).second) {
    std::vector<std::pair<int64_t, size_t>> next;
    for (size_t command : ready_)
      if (state_.bytesDuring(command) <= most_) next.emplace_back(state_.growthBy(command), command);
    std::sort(next.begin(), next.end());
    for (auto [growth, command] : next) {
      take(command);
      if (goOn()) {
        dead_ends_.erase(here);
        return true;
      }
      takeBack(1);
      if (*effort_ <= 0) break;
    }
  }
  takeBack(order_.size() - begin);
  return false;
}

}  // namespace gpuc::ordering
