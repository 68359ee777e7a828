#include "passes/placement/Instance.h"

#include <tuple>

namespace gpuc::placement {

Instance::Instance(const Problem& problem) : buffer_count_(problem.buffers.size()) {
  addItems(problem);
  addExtraConflicts(problem);
  sumSections();
}

void Instance::addItems(const Problem& problem) {
  std::vector<std::tuple<int64_t, bool, size_t>> events;  // time, starts, item: ends come before starts
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.size == 0) continue;
    events.emplace_back(buffer.lower, true, items_.size());
    events.emplace_back(buffer.upper, false, items_.size());
    double duration = static_cast<double>(buffer.upper) - static_cast<double>(buffer.lower);
    items_.push_back({occupiedBytes(buffer), buffer.alignment, 0, 0, duration, false});
    buffer_of_.push_back(i);
  }
  std::sort(events.begin(), events.end());

  // A section lasts while buffers only start, then while they only end; the next start opens another.
  bool some_ended = true;
  for (auto [time, starts, item] : events) {
    if (starts && some_ended) ++section_count_;
    some_ended = !starts;
    uint32_t section = static_cast<uint32_t>(section_count_ - 1);
    (starts ? items_[item].first : items_[item].last) = starts ? section : section + 1;
  }
}

void Instance::addExtraConflicts(const Problem& problem) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> item_of(buffer_count_, kNone);
  for (size_t item = 0; item < items_.size(); ++item) item_of[buffer_of_[item]] = item;
  extra_.resize(items_.size());
  for (auto [a, b] : problem.conflicts) {
    size_t x = item_of[a], y = item_of[b];
    if (x == kNone || y == kNone) continue;
    extra_[x].push_back(y);
    extra_[y].push_back(x);
    items_[x].has_extra = items_[y].has_extra = true;
  }
  for (std::vector<size_t>& others : extra_) {
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
  }
}

void Instance::sumSections() {
  section_totals_.assign(section_count_ + 1, 0);
  for (const Item& item : items_) {
    section_totals_[item.first] += item.size;
    section_totals_[item.last] -= item.size;
  }
  for (size_t s = 0; s < section_count_; ++s) {
    lower_bound_ = std::max(lower_bound_, section_totals_[s]);
    section_totals_[s + 1] += section_totals_[s];
  }
  section_totals_.resize(section_count_);
}

Solution Instance::toSolution(const std::vector<int64_t>& item_offsets) const {
  Solution solution;
  solution.offsets.assign(buffer_count_, 0);
  for (size_t item = 0; item < items_.size(); ++item) {
    solution.offsets[buffer_of_[item]] = item_offsets[item];
    solution.height = std::max(solution.height, item_offsets[item] + items_[item].size);
  }
  return solution;
}

}  // namespace gpuc::placement
