#include "test/ordering/judge.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <unordered_map>

namespace gpuc::ordering {

Judge::Judge(const Problem& problem) : problem_(problem), users_(problem.buffers.size()) {
  for (size_t command = 0; command < problem.commands.size(); ++command) {
    for (size_t buffer : problem.commands[command].buffers) users_[buffer] |= 1u << command;
    uint32_t before = 0;
    for (size_t predecessor : problem.commands[command].predecessors) before |= 1u << predecessor;
    predecessors_.push_back(before);
  }
}

bool Judge::mayFollow(uint32_t done, size_t command) const {
  return !(done >> command & 1) && (predecessors_[command] & ~done) == 0;
}

int64_t Judge::overlaid(uint32_t done, size_t command) const {
  int64_t bytes = 0;
  std::set<size_t> taken;
  for (auto [result, operand] : problem_.commands[command].overlays) {
    const uint32_t others = ~(1u << command);
    const bool is_first = !problem_.buffers[result].from_start && (users_[result] & others & done) == 0;
    const bool is_last = !problem_.buffers[operand].to_end && (users_[operand] & others & ~done) == 0;
    if (!is_first || !is_last || taken.count(result) || taken.count(operand)) continue;
    taken.insert({result, operand});
    bytes += problem_.buffers[result].bytes;
  }
  return bytes;
}

int64_t Judge::liveDuring(uint32_t done, size_t command) const {
  int64_t bytes = problem_.commands[command].scratch - overlaid(done, command);
  for (size_t buffer = 0; buffer < users_.size(); ++buffer) {
    const uint32_t others = users_[buffer] & ~(1u << command);
    const bool before = problem_.buffers[buffer].from_start || (others & done);
    const bool behind = problem_.buffers[buffer].to_end || (others & ~done);
    if (others != users_[buffer] || (before && behind)) bytes += problem_.buffers[buffer].bytes;
  }
  return bytes;
}

int64_t Judge::peakOf(const Order& order) const {
  int64_t peak = 0;
  uint32_t done = 0;
  for (size_t command : order) {
    if (!mayFollow(done, command)) return -1;
    peak = std::max(peak, liveDuring(done, command));
    done |= 1u << command;
  }
  return peak;
}

int64_t Judge::leastPeak(int64_t enough) const {
  const size_t count = problem_.commands.size();
  const uint32_t all = (1u << count) - 1;
  std::unordered_map<uint32_t, int64_t> peaks = {{0, 0}};  // the least that is known to reach a set with
  std::priority_queue<std::pair<int64_t, uint32_t>, std::vector<std::pair<int64_t, uint32_t>>, std::greater<>>
      next;
  next.emplace(0, 0);
  while (!next.empty()) {
    const auto [peak, done] = next.top();
    next.pop();
    if (done == all) return peak;
    if (peak > peaks[done]) continue;
    for (size_t command = 0; command < count; ++command) {
      if (!mayFollow(done, command)) continue;
      const int64_t higher = std::max(peak, liveDuring(done, command));
      auto [known, is_new] = peaks.try_emplace(done | 1u << command, enough);
      if (higher >= known->second) continue;
      known->second = higher;
      next.emplace(higher, known->first);
    }
  }
  return -1;
}

}  // namespace gpuc::ordering
