#include "runtime/plan/dead_bytes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>

#include "runtime/plan/lifetimes.h"

namespace gpuc {
namespace {

/// How many buffers need each byte.
class Needs {
 public:
  explicit Needs(int64_t bytes) { counts_ = {{0, 0}, {bytes, 0}}; }

  void add(ByteRange range, int change) {
    const auto first = splitAt(range.begin), end = splitAt(range.end);
    for (auto at = first; at != end; ++at) at->second += change;
    mergeFrom(first == counts_.begin() ? first : std::prev(first), range.end);
  }

  /// Appends what nobody needs of a range.
  void appendUnneeded(ByteRange range, std::vector<ByteRange>& list) const {
    for (auto at = std::prev(counts_.upper_bound(range.begin)); at != counts_.end() && at->first < range.end;
         ++at) {
      if (at->second > 0) continue;
      const int64_t end = std::next(at) == counts_.end() ? range.end : std::next(at)->first;
      append({std::max(range.begin, at->first), std::min(range.end, end)}, list);
    }
  }

 private:
  using Counts = std::map<int64_t, int>;  // from this byte on, up to the next

  Counts::iterator splitAt(int64_t place) {
    auto next = counts_.lower_bound(place);
    if (next != counts_.end() && next->first == place) return next;
    return counts_.emplace_hint(next, place, std::prev(next)->second);
  }

  void mergeFrom(Counts::iterator at, int64_t end) {
    for (auto next = std::next(at); next != counts_.end() && at->first <= end; next = std::next(at))
      if (next->second == at->second && std::next(next) != counts_.end())
        counts_.erase(next);
      else
        at = next;
  }

  static void append(ByteRange range, std::vector<ByteRange>& list) {
    if (range.begin >= range.end) return;
    if (!list.empty() && list.back().end == range.begin)
      list.back().end = range.end;
    else
      list.push_back(range);
  }

  Counts counts_;
};

/// Executes the main stream once, loops too, and notes behind each command what is needed no more.
class Walk {
 public:
  Walk(const fb::Plan& plan, const fb::Program& program)
      : plan_(plan), needs_(static_cast<int64_t>(plan.arena_bytes())) {
    const ProgramLifetimes all = lifetimesOf(plan, program);
    for (uint32_t buffer : all.lasting) needs_.add(bytesOf(plan, buffer), 1);
    needs_.appendUnneeded({0, static_cast<int64_t>(plan.arena_bytes())}, dead_.at_start);
    for (const BufferLifetime& lifetime : all.lifetimes) {
      begins_[lifetime.first].push_back(lifetime.buffer);
      if (lifetime.last) ends_[lifetime.last].push_back(lifetime.buffer);
    }
    if (countOf(program.streams()) > 0) walk(program.streams()->Get(0)->commands());
  }

  DeadBytes take() { return std::move(dead_); }

 private:
  using Buffers = std::unordered_map<const fb::Command*, std::vector<uint32_t>>;

  void walk(const Commands* commands) {
    for (const fb::Command* command : each(commands)) {
      for (uint32_t buffer : listOf(begins_, command)) needs_.add(bytesOf(plan_, buffer), 1);
      const size_t ended_before = ended_.size();
      if (const std::optional<CommandLoop> loop = loopOf(*command)) walk(loop->commands);
      const size_t ended_within = ended_.size();
      for (uint32_t buffer : listOf(ends_, command)) {
        needs_.add(bytesOf(plan_, buffer), -1);
        ended_.push_back(buffer);
      }
      note(*command, command->work_as_Parallel() ? ended_before : ended_within);
    }
  }

  static std::span<const uint32_t> listOf(const Buffers& buffers, const fb::Command* command) {
    auto found = buffers.find(command);
    return found == buffers.end() ? std::span<const uint32_t>() : found->second;
  }

  /// What is dead behind the command, of the buffers that ended from `first` on.
  void note(const fb::Command& command, size_t first) {
    std::map<int64_t, int64_t> ended;  // the farthest end by beginning
    for (size_t i = first; i < ended_.size(); ++i) {
      const ByteRange bytes = bytesOf(plan_, ended_[i]);
      int64_t& end = ended[bytes.begin];
      end = std::max(end, bytes.end);
    }
    std::vector<ByteRange> list;
    int64_t done = 0;
    for (auto [begin, end] : ended) {
      if (end > done) needs_.appendUnneeded({std::max(begin, done), end}, list);
      done = std::max(done, end);
    }
    if (!list.empty()) dead_.behind.emplace(&command, std::move(list));
  }

  const fb::Plan& plan_;
  Needs needs_;
  Buffers begins_, ends_;
  std::vector<uint32_t> ended_;  // so far, in the order of their ends
  DeadBytes dead_;
};

}  // namespace

DeadBytes deadBytesOf(const fb::Plan& plan, const fb::Program& program) { return Walk(plan, program).take(); }

}  // namespace gpuc
