#include "passes/placement/Search.h"

#include <numeric>
#include <tuple>

namespace gpuc::placement {
namespace {

enum class Outcome { kFound, kNone, kStopped };

/// By which properties candidates at the same offset are tried, the larger first.
enum class Heuristic { kDurationAreaTotal, kTotalAreaDuration, kTotalDurationArea };

constexpr Heuristic kHeuristics[] = {Heuristic::kDurationAreaTotal, Heuristic::kTotalAreaDuration,
                                     Heuristic::kTotalDurationArea};

/// Items that are searched for together, since they are in conflict directly or through one another:
/// positions are their order of preference. All lie within sections [first, last).
struct Part {
  std::vector<uint32_t> items;
  uint32_t first;
  uint32_t last;
};

/// Where the search stands within a part: offsets must not fall, and at equal offsets positions must rise, so
/// that each set of positions is met in one order only.
struct Front {
  int64_t offset = 0;
  size_t position = 0;
};

struct Candidate {
  int64_t offset;
  size_t position;
  bool operator<(const Candidate& other) const {
    return std::tie(offset, position) < std::tie(other.offset, other.position);
  }
};

class BranchAndBound {
 public:
  BranchAndBound(const Instance& instance, int64_t capacity, Budget& budget)
      : instance_(instance),
        capacity_(capacity),
        budget_(budget),
        lowest_(instance.size(), 0),
        offsets_(instance.size(), 0),
        placed_(instance.size(), false),
        totals_(instance.sectionTotals()),
        floors_(instance.sectionCount(), 0),
        neighbours_(instance.size()) {
    for (uint32_t a = 0; a < instance.size(); ++a)
      for (uint32_t b = a + 1; b < instance.size(); ++b)
        if (instance.conflict(a, b)) {
          neighbours_[a].push_back(b);
          neighbours_[b].push_back(a);
        }
  }

  /// Searches for at most `limit` steps with one heuristic.
  Outcome run(Heuristic heuristic, int64_t limit) {
    heuristic_ = heuristic;
    remaining_ = limit;
    Part all{std::vector<uint32_t>(instance_.size()), 0, static_cast<uint32_t>(instance_.sectionCount())};
    std::iota(all.items.begin(), all.items.end(), 0u);
    return solveComponents(all);
  }

  Placement result() const {
    Placement placement{offsets_, 0, 0};
    for (size_t i = 0; i < instance_.size(); ++i)
      placement.height = std::max(placement.height, offsets_[i] + instance_[i].size);
    return placement;
  }

 private:
  struct PutDown {
    uint32_t item;
    size_t changes;  // how many there were before it
  };
  struct LowestChange {
    uint32_t item;
    int64_t former;
  };

  bool step(int64_t work) {
    remaining_ -= work;
    return budget_.spend(work) && remaining_ > 0;
  }

  /// Splits the unplaced items of a part where no interval crosses from one section to the next, and solves
  /// the pieces on their own: what fails in one is then not tried again for every variant of another.
  Outcome solveComponents(const Part& part) {
    const size_t mark = put_down_.size();
    for (Part& piece : split(part)) {
      sortByPreference(piece);
      Outcome outcome = search(piece, Front{});
      if (outcome == Outcome::kFound) continue;
      takeBackTo(mark);
      return outcome;
    }
    return Outcome::kFound;
  }

  std::vector<Part> split(const Part& part) const {
    std::vector<uint32_t> rest;
    bool has_extra = false;
    for (uint32_t item : part.items) {
      if (placed_[item]) continue;
      rest.push_back(item);
      has_extra |= instance_[item].has_extra;
    }
    if (rest.empty()) return {};
    std::sort(rest.begin(), rest.end(), [&](uint32_t a, uint32_t b) {
      return std::tie(instance_[a].first, a) < std::tie(instance_[b].first, b);
    });
    std::vector<Part> pieces;
    for (uint32_t item : rest) {
      const Item& it = instance_[item];
      // A conflict pair may tie what time does not.
      if (pieces.empty() || (it.first >= pieces.back().last && !has_extra))
        pieces.push_back({{}, it.first, it.last});
      pieces.back().items.push_back(item);
      pieces.back().last = std::max(pieces.back().last, it.last);
    }
    return pieces;
  }

  void sortByPreference(Part& part) const {
    struct Key {
      double a, b, c;
      uint32_t item;
    };
    std::vector<Key> keys;
    for (uint32_t i : part.items) {
      const Item& item = instance_[i];
      double total =
          static_cast<double>(*std::max_element(totals_.begin() + item.first, totals_.begin() + item.last));
      double area = item.duration * static_cast<double>(item.size);
      switch (heuristic_) {
        case Heuristic::kDurationAreaTotal:
          keys.push_back({item.duration, area, total, i});
          break;
        case Heuristic::kTotalAreaDuration:
          keys.push_back({total, area, item.duration, i});
          break;
        case Heuristic::kTotalDurationArea:
          keys.push_back({total, item.duration, area, i});
          break;
      }
    }
    std::sort(keys.begin(), keys.end(), [](const Key& x, const Key& y) {
      return std::tie(y.a, y.b, y.c, x.item) < std::tie(x.a, x.b, x.c, y.item);
    });
    for (size_t k = 0; k < keys.size(); ++k) part.items[k] = keys[k].item;
  }

  /// Places the rest of the part's items at or above the front. Unless they are found, all is as it was
  /// before.
  Outcome search(const Part& part, Front front) {
    if (!step(static_cast<int64_t>(part.items.size()))) return Outcome::kStopped;
    std::vector<Candidate> candidates;
    bool any = false;
    if (!collect(part, front, candidates, any)) return Outcome::kNone;
    if (!any) return Outcome::kFound;
    std::sort(candidates.begin(), candidates.end());
    for (const Candidate& candidate : candidates) {
      const size_t mark = put_down_.size();
      bool free_above = !put(part.items[candidate.position], candidate.offset);
      Front next{candidate.offset, candidate.position};
      Outcome outcome = cutsApart(part) ? solveComponents(part) : search(part, next);
      if (outcome == Outcome::kFound) return outcome;
      takeBackTo(mark);
      // Nothing can lie on an item that is free above, so that it was not what failed.
      if (outcome == Outcome::kStopped || free_above) return outcome;
    }
    return Outcome::kNone;
  }

  /// Whether some section of the part is the last of all unplaced items in it.
  bool cutsApart(const Part& part) {
    crossings_.assign(part.last - part.first + 1, 0);
    bool any = false;
    for (uint32_t other : part.items) {
      if (placed_[other]) continue;
      if (instance_[other].has_extra) return false;
      any = true;
      ++crossings_[instance_[other].first - part.first];
      --crossings_[instance_[other].last - part.first - 1];
    }
    if (!any) return false;
    int64_t crossing = 0;
    for (uint32_t s = part.first; s + 1 < part.last; ++s) {
      crossing += crossings_[s - part.first];
      if (crossing == 0) return true;
    }
    return false;
  }

  /// The candidates for the next item, or false if the rest cannot fit.
  bool collect(const Part& part, Front front, std::vector<Candidate>& candidates, bool& any) {
    int64_t min_end = INT64_MAX;
    for (uint32_t item : part.items) {
      if (placed_[item]) continue;
      any = true;
      min_end = std::min(min_end, std::max(lowest_[item], front.offset) + instance_[item].size);
    }
    if (!any) return true;
    std::fill(floors_.begin() + part.first, floors_.begin() + part.last, INT64_MAX);
    for (size_t position = 0; position < part.items.size(); ++position) {
      uint32_t item = part.items[position];
      if (placed_[item]) continue;
      int64_t offset = lowest_[item];
      // Had it been meant to lie here, it would have been placed before: something must still come beneath
      // it.
      bool passed = offset < front.offset || (offset == front.offset && position < front.position);
      if (passed)
        offset = std::max(offset, min_end);
      else if (offset < min_end)
        candidates.push_back({offset, position});
      const Item& it = instance_[item];
      for (uint32_t s = it.first; s < it.last; ++s) floors_[s] = std::min(floors_[s], offset);
    }
    for (uint32_t s = part.first; s < part.last; ++s)
      if (floors_[s] != INT64_MAX && floors_[s] > capacity_ - totals_[s]) return false;
    return true;
  }

  /// Puts the item down; false if no unplaced item is in conflict with it.
  bool put(uint32_t item, int64_t offset) {
    put_down_.push_back({item, changes_.size()});
    placed_[item] = true;
    offsets_[item] = offset;
    const Item& it = instance_[item];
    for (uint32_t s = it.first; s < it.last; ++s) totals_[s] -= it.size;
    bool below_something = false;
    for (uint32_t other : neighbours_[item]) {
      if (placed_[other]) continue;
      below_something = true;
      if (lowest_[other] >= offset + it.size) continue;
      changes_.push_back({other, lowest_[other]});
      lowest_[other] = alignUp(offset + it.size, instance_[other].alignment);
    }
    return below_something;
  }

  /// Undoes the latest put()s until `count` of them are left.
  void takeBackTo(size_t count) {
    while (put_down_.size() > count) {
      auto [item, change_count] = put_down_.back();
      put_down_.pop_back();
      placed_[item] = false;
      const Item& it = instance_[item];
      for (uint32_t s = it.first; s < it.last; ++s) totals_[s] += it.size;
      while (changes_.size() > change_count) {
        lowest_[changes_.back().item] = changes_.back().former;
        changes_.pop_back();
      }
    }
  }

  const Instance& instance_;
  const int64_t capacity_;
  Budget& budget_;
  std::vector<int64_t>
      lowest_;  // unplaced item → the lowest offset above all placed ones in conflict with it
  std::vector<int64_t> offsets_;  // placed item → its offset
  std::vector<char> placed_;
  std::vector<PutDown> put_down_;  // what was put down and not taken back, in order
  std::vector<LowestChange> changes_;
  std::vector<int64_t> totals_;  // section → bytes of its unplaced items
  std::vector<int64_t> floors_;  // section → the lowest offset that an unplaced item in it can have
  std::vector<int64_t> crossings_;
  std::vector<std::vector<uint32_t>> neighbours_;
  Heuristic heuristic_ = Heuristic::kDurationAreaTotal;
  int64_t remaining_ = 0;
};

}  // namespace

SearchResult searchWithin(const Instance& instance, int64_t capacity, Budget& budget) {
  int64_t n = static_cast<int64_t>(instance.size());
  if (!budget.spend(n * n)) return {};
  BranchAndBound search(instance, capacity, budget);
  // No heuristic is the best on all problems: each gets a short try, then each a longer one.
  for (int64_t limit = n * n * 2; !budget.exhausted(); limit *= 2) {
    for (Heuristic heuristic : kHeuristics) {
      switch (search.run(heuristic, limit)) {
        case Outcome::kFound:
          return {search.result(), true};
        case Outcome::kNone:
          return {std::nullopt, true};
        case Outcome::kStopped:
          break;
      }
    }
  }
  return {};
}

}  // namespace gpuc::placement
