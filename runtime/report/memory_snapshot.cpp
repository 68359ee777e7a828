#include "runtime/report/memory_snapshot.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <vector>

#include "runtime/plan/describe.h"
#include "runtime/plan/timeline.h"
#include "runtime/report/pickle.h"
#include "runtime/report/programs.h"
#include "runtime/report/residuals.h"

namespace gpuc {
namespace {

/// Where the arena seems to lie, so that no buffer is at 0.
constexpr uint64_t kArena = 1ull << 36;

/// "model.mlir:12:5" in its parts.
struct Source {
  std::string_view file;
  uint64_t line = 0;
};
Source sourceOf(std::string_view text) {
  for (int part = 0; part < 2; ++part) {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return {text};
    if (part == 0) {
      text = text.substr(0, colon);
      continue;
    }
    Source source{text.substr(0, colon)};
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), source.line);
    return source;
  }
  return {text};
}

class Snapshot {
 public:
  Snapshot(const fb::Plan& plan, const fb::Program& program)
      : plan_(plan), timeline_(plan, program), residuals_(residualsOf(plan)) {}

  std::string write() {
    events_.append(event("segment_alloc", 0, plan_.arena_bytes(), pickle::List().str(), "unknown"));
    const std::vector<uint32_t> order = byBeginning();
    for (uint32_t index : order) {
      freeBefore(timeline_.spans()[index]->first);
      allocate(index);
    }
    freeBefore(timeline_.length());
    pickle::List segments, traces;
    segments.append(segment());
    traces.append(events_.str());
    return pickle::file(pickle::dict({{"segments", segments.str()}, {"device_traces", traces.str()}}));
  }

 private:
  struct Live {
    uint32_t buffer;
    uint64_t end;
  };

  std::vector<uint32_t> byBeginning() const {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < timeline_.spans().size(); ++i)
      if (timeline_.spans()[i]) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(timeline_.spans()[a]->first, a) < std::pair(timeline_.spans()[b]->first, b);
    });
    return order;
  }

  void allocate(uint32_t index) {
    const fb::Buffer& buffer = *plan_.buffers()->Get(index);
    for (uint32_t slot = 0; slot < (buffer.slot_stride() ? plan_.input_slots() : 1); ++slot) {
      const uint64_t begin = buffer.offset() + slot * buffer.slot_stride(), end = begin + buffer.size();
      if (begin == end) continue;
      freeWithin(begin, end);
      live_[begin] = {index, end};
      ends_.emplace(timeline_.spans()[index]->last, begin);
      events_.append(event("alloc", begin, buffer.size(), framesOf(index), kindOf(index)));
    }
  }

  /// What held something up to a command before this one.
  void freeBefore(uint32_t step) {
    const bool is_end = step >= timeline_.length();
    while (!ends_.empty() && ends_.begin()->first < step) {
      const auto [last, begin] = *ends_.begin();
      if (is_end && last + 1 >= timeline_.length()) return;  // stays
      free(live_.find(begin));
    }
  }

  void freeWithin(uint64_t begin, uint64_t end) {
    auto at = live_.lower_bound(begin);
    if (at != live_.begin() && std::prev(at)->second.end > begin) --at;
    while (at != live_.end() && at->first < end) at = free(at);
  }

  std::map<uint64_t, Live>::iterator free(std::map<uint64_t, Live>::iterator at) {
    const auto [begin, block] = *at;
    ends_.erase({timeline_.spans()[block.buffer]->last, begin});
    for (const char* action : {"free_requested", "free_completed"})
      events_.append(event(action, begin, block.end - begin, framesOf(block.buffer), kindOf(block.buffer)));
    return live_.erase(at);
  }

  static std::string event(const char* action, uint64_t at, uint64_t size, const std::string& frames,
                           const char* category) {
    return pickle::dict({{"action", pickle::text(action)},
                         {"addr", pickle::number(kArena + at)},
                         {"size", pickle::number(size)},
                         {"stream", pickle::number(0)},
                         {"frames", frames},
                         {"category", pickle::text(category)}});
  }

  const char* kindOf(uint32_t index) const {
    const fb::Category category = plan_.buffers()->Get(index)->category();
    const bool is_residual = category == fb::Category::activation && residuals_[index] != Residual::none;
    return is_residual ? nameOf(residuals_[index]) : fb::EnumNameCategory(category);
  }

  /// As the stack where it was allocated: the tensor, and the layer that it is of.
  std::string framesOf(uint32_t index) const {
    const fb::Buffer& buffer = *plan_.buffers()->Get(index);
    const Source source = sourceOf(textOf(buffer.source()));
    pickle::List frames;
    auto add = [&](const std::string& name) {
      frames.append(pickle::dict({{"filename", pickle::text(source.file)},
                                  {"line", pickle::number(source.line)},
                                  {"name", pickle::text(name)}}));
    };
    add(std::string(textOf(buffer.name())) + " " + describeTensor(buffer, "").str() + ", " + kindOf(index));
    if (const std::string_view layer = textOf(buffer.location()); !layer.empty())
      add("layer " + std::string(layer));
    return frames.str();
  }

  /// The arena as it is when the last command is done: blocks that follow one another.
  std::string segment() const {
    pickle::List blocks;
    uint64_t at = 0, live_bytes = 0;
    auto add = [&](uint64_t end, const char* state, const std::string& frames) {
      if (end == at) return;
      blocks.append(pickle::dict({{"address", pickle::number(kArena + at)},
                                  {"size", pickle::number(end - at)},
                                  {"requested_size", pickle::number(end - at)},
                                  {"state", pickle::text(state)},
                                  {"frames", frames}}));
      at = end;
    };
    for (const auto& [begin, block] : live_) {
      add(begin, "inactive", pickle::List().str());
      live_bytes += block.end - begin;
      add(block.end, "active_allocated", framesOf(block.buffer));
    }
    add(plan_.arena_bytes(), "inactive", pickle::List().str());
    return pickle::dict({{"device", pickle::number(0)},
                         {"address", pickle::number(kArena)},
                         {"total_size", pickle::number(plan_.arena_bytes())},
                         {"allocated_size", pickle::number(live_bytes)},
                         {"active_size", pickle::number(live_bytes)},
                         {"requested_size", pickle::number(live_bytes)},
                         {"stream", pickle::number(0)},
                         {"segment_type", pickle::text("large")},
                         {"frames", pickle::List().str()},
                         {"blocks", blocks.str()}});
  }

  const fb::Plan& plan_;
  const Timeline timeline_;
  const std::vector<Residual> residuals_;
  pickle::List events_;
  std::map<uint64_t, Live> live_;                 // by where they begin
  std::set<std::pair<uint32_t, uint64_t>> ends_;  // the last command of each of them, and where it begins
};

}  // namespace

std::string memorySnapshot(const Plan& plan) {
  const std::vector<const fb::Program*> programs = trainStepFirst(plan.root());
  if (programs.empty())
    return pickle::file(
        pickle::dict({{"segments", pickle::List().str()}, {"device_traces", pickle::List().str()}}));
  return Snapshot(plan.root(), *programs.front()).write();
}

}  // namespace gpuc
