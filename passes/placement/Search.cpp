#include "passes/placement/Search.h"

#include <array>
#include <bit>
#include <iterator>
#include <numeric>
#include <tuple>

#include "passes/placement/Hash.h"
#include "passes/placement/Siblings.h"
#include "passes/placement/Skyline.h"

namespace gpuc::placement {
namespace {

/// By which properties candidates at the same offset are tried, the larger first.
enum Property { kDuration, kArea, kTotal };
using Heuristic = std::array<Property, 3>;

constexpr Heuristic kHeuristics[] = {
    {kDuration, kArea, kTotal}, {kTotal, kArea, kDuration}, {kTotal, kDuration, kArea}};

/// Items that are searched for together, since they are in conflict directly or through one another:
/// positions are their order of preference. All lie within sections [first, last).
struct Part {
  std::vector<uint32_t> items;
  uint32_t first;
  uint32_t last;
  int64_t slack = 0;
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

/// A node of the search tree. `state` is a hash of all that its subtree depends on: which items are not
/// placed and where each could lie, or that it must be lifted first. A part that fails in one state fails
/// wherever it comes back.
struct Node {
  std::vector<Candidate> candidates;
  uint64_t state = 0;
  bool all_placed = true;
};

/// What the search does most of the time: no number from `begin` on is above `most` then. The least of two
/// such numbers takes one instruction where there are AVX-512's, four without vectors, and a dozen for two
/// with SSE2's.
__attribute__((target_clones("avx512f", "avx2", "default"))) void lower(int64_t* begin, int64_t* end,
                                                                        int64_t most) {
  for (; begin != end; ++begin) *begin = std::min(*begin, most);
}

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

  /// Searches for at most `limit` steps with one heuristic. Variant 0 is the heuristic as it is; the others
  /// change what it sees of each item by up to 15%, each in its own way.
  Outcome run(Heuristic heuristic, uint64_t variant, int64_t limit) {
    heuristic_ = heuristic;
    variant_ = variant;
    remaining_ = limit;
    Part all{std::vector<uint32_t>(instance_.size()), 0, static_cast<uint32_t>(instance_.sectionCount())};
    std::iota(all.items.begin(), all.items.end(), 0u);
    return solveComponents(all);
  }

  /// Item → offset, once a placement is found.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct PutDown {
    uint32_t item;
    size_t changes;  // how many there were before it
  };
  struct LowestChange {
    uint32_t item;
    int64_t former;
  };

  /// Counts one node of the tree; false when the search has to stop.
  bool step(const Part& part) {
    constexpr int64_t kWorkPerItem = 10;
    int64_t work = kWorkPerItem * static_cast<int64_t>(part.items.size());
    remaining_ -= work;
    return budget_.spend(work) && remaining_ > 0;
  }

  /// Splits the unplaced items of a part where no interval crosses from one section to the next, and solves
  /// the pieces on their own: what fails in one is then not tried again for every variant of another.
  Outcome solveComponents(const Part& part) {
    const size_t mark = put_down_.size();
    std::vector<Part> pieces = split(part);
    for (Part& piece : pieces) piece.slack = slackOf(piece);
    std::sort(pieces.begin(), pieces.end(), [](const Part& a, const Part& b) {
      return std::tie(a.slack, a.first) < std::tie(b.slack, b.first);
    });
    for (Part& piece : pieces) {
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
        pieces.push_back({{}, it.first, it.last, 0});
      pieces.back().items.push_back(item);
      pieces.back().last = std::max(pieces.back().last, it.last);
    }
    return pieces;
  }

  /// Bytes that the fullest section of a part has to spare; the less, the sooner the part fails.
  int64_t slackOf(const Part& part) const {
    std::vector<int64_t> floors(part.last - part.first, INT64_MAX);
    for (uint32_t item : part.items)
      for (uint32_t s = instance_[item].first; s < instance_[item].last; ++s)
        floors[s - part.first] = std::min(floors[s - part.first], lowest_[item]);
    int64_t slack = INT64_MAX;
    for (uint32_t s = part.first; s < part.last; ++s)
      if (floors[s - part.first] != INT64_MAX)
        slack = std::min(slack, capacity_ - floors[s - part.first] - totals_[s]);
    return slack;
  }

  void sortByPreference(Part& part) const {
    std::vector<std::tuple<double, double, double, uint32_t>> keys;
    for (uint32_t i : part.items) {
      const Item& item = instance_[i];
      double change = varied(1, i, variant_, variant_ == 0 ? 0 : 0.15);
      double duration = item.duration * change;
      double area = duration * static_cast<double>(item.size);
      double total = change * static_cast<double>(*std::max_element(totals_.begin() + item.first,
                                                                    totals_.begin() + item.last));
      const double properties[] = {duration, area, total};
      const auto [first, second, third] = heuristic_;
      keys.emplace_back(-properties[first], -properties[second], -properties[third], i);
    }
    std::sort(keys.begin(), keys.end());
    for (size_t k = 0; k < keys.size(); ++k) part.items[k] = std::get<uint32_t>(keys[k]);
  }

  /// Places the rest of the part's items at or above the front. Unless they are found, all is as it was
  /// before.
  Outcome search(const Part& part, Front front) {
    if (!step(part)) return Outcome::kStopped;
    Node node;
    if (!collect(part, front, node)) return Outcome::kNone;
    if (node.all_placed) return Outcome::kFound;
    uint64_t& failed = failed_[node.state % failed_.size()];
    if (failed == node.state) return Outcome::kNone;

    std::sort(node.candidates.begin(), node.candidates.end());
    for (const Candidate& candidate : node.candidates) {
      const size_t mark = put_down_.size();
      bool free_above = !put(part.items[candidate.position], candidate.offset);
      Front next{candidate.offset, candidate.position};
      Outcome outcome = cutsApart(part) ? solveComponents(part) : search(part, next);
      if (outcome == Outcome::kFound) return outcome;
      takeBackTo(mark);
      if (outcome == Outcome::kStopped) return outcome;
      // Nothing can lie on an item that is free above, so that it was not what failed.
      if (free_above) break;
    }
    failed = node.state;
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

  /// Fills in the node; false if some section cannot hold the rest of its items.
  bool collect(const Part& part, Front front, Node& node) {
    // Where the first of the unplaced items could end. What lies at or above that leaves room beneath for
    // that item, which may as well be placed first.
    int64_t first_end = INT64_MAX;
    for (uint32_t item : part.items) {
      if (placed_[item]) continue;
      node.all_placed = false;
      first_end = std::min(first_end, std::max(lowest_[item], front.offset) + instance_[item].size);
    }
    std::fill(floors_.begin() + part.first, floors_.begin() + part.last, INT64_MAX);
    for (size_t position = 0; position < part.items.size(); ++position) {
      uint32_t item = part.items[position];
      if (placed_[item]) continue;
      int64_t offset = lowest_[item];
      // Had it been meant to lie here, it would have been placed before: something must still come beneath
      // it.
      bool passed = offset < front.offset || (offset == front.offset && position < front.position);
      node.state ^= mix(item, passed ? UINT64_MAX : static_cast<uint64_t>(offset));
      if (passed)
        offset = std::max(offset, first_end);
      else if (offset < first_end)
        node.candidates.push_back({offset, position});
      const Item& it = instance_[item];
      lower(floors_.data() + it.first, floors_.data() + it.last, offset);
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
  // Unplaced item → the lowest offset above all placed ones in conflict with it.
  std::vector<int64_t> lowest_;
  std::vector<int64_t> offsets_;  // placed item → its offset
  std::vector<char> placed_;
  std::vector<PutDown> put_down_;  // what was put down and not taken back, in order
  std::vector<LowestChange> changes_;
  std::vector<int64_t> totals_;  // section → bytes of its unplaced items
  std::vector<int64_t> floors_;  // section → the lowest offset that an unplaced item in it can have
  std::vector<int64_t> crossings_;
  std::vector<std::vector<uint32_t>> neighbours_;
  // States known to fail, each at its hash's place until another needs it. It outlives the runs: what one
  // heuristic has ruled out no other looks at again.
  std::vector<uint64_t> failed_ = std::vector<uint64_t>(size_t{1} << 20, 0);
  uint64_t variant_ = 0;
  Heuristic heuristic_ = kHeuristics[0];
  int64_t remaining_ = 0;
};

/// Which search runs next and for how long. None is the best on all problems, so that each gets a short try,
/// then each one of twice the length.
class Schedule {
 public:
  Schedule(const Instance& instance, int64_t capacity, int64_t shortest, Budget& budget)
      : instance_(instance),
        capacity_(capacity),
        budget_(budget),
        shortest_(shortest),
        offsets_search_(instance, capacity, budget) {}

  Outcome run() {
    // The skyline of a time knows nothing of conflicts with other times.
    const bool has_skyline = !hasConflictPairs();
    for (int64_t length = shortest_; !budget_.exhausted(); length *= 2) {
      Outcome outcome = runHeuristics(length);
      if (has_skyline && outcome == Outcome::kStopped) outcome = runSkyline(3 * length);
      if (has_skyline && outcome == Outcome::kStopped) outcome = runSiblings(3 * length);
      if (outcome != Outcome::kStopped) return outcome;
    }
    return Outcome::kStopped;
  }

  /// What was found.
  Placement result() const {
    Placement placement{offsets_, 0, 0};
    for (size_t i = 0; i < instance_.size(); ++i)
      placement.height = std::max(placement.height, offsets_[i] + instance_[i].size);
    return placement;
  }

 private:
  bool hasConflictPairs() const {
    for (size_t i = 0; i < instance_.size(); ++i)
      if (instance_[i].has_extra) return true;
    return false;
  }

  Outcome runHeuristics(int64_t length) {
    Outcome outcome = Outcome::kStopped;
    for (Heuristic heuristic : kHeuristics) {
      outcome = offsets_search_.run(heuristic, /*variant=*/0, length);
      if (outcome == Outcome::kStopped) outcome = runVariants(length);
      if (outcome != Outcome::kStopped) break;
    }
    if (outcome == Outcome::kFound) offsets_ = offsets_search_.offsets();
    return outcome;
  }

  /// As much time as into a heuristic goes into variants of all in many short tries: on some problems these
  /// find at once what no heuristic finds by itself.
  Outcome runVariants(int64_t length) {
    for (int64_t spent = 0; spent < length && !budget_.exhausted(); spent += try_length_) {
      Outcome outcome =
          offsets_search_.run(kHeuristics[variant_ % std::size(kHeuristics)], variant_ + 1, try_length_);
      if (outcome != Outcome::kStopped) return outcome;
      if (++variant_ % std::size(kHeuristics) == 0) try_length_ += try_length_ / 10;
    }
    return Outcome::kStopped;
  }

  Outcome runSkyline(int64_t length) {
    if (!skyline_) skyline_.emplace(instance_, capacity_, statesFor(budget_.left()), budget_);
    for (int64_t spent = 0; spent < length && !budget_.exhausted(); spent += skyline_length_) {
      Outcome outcome = skyline_->run(skyline_variant_, skyline_length_);
      if (outcome == Outcome::kFound) offsets_ = skyline_->offsets();
      if (outcome != Outcome::kStopped) return outcome;
      if (++skyline_variant_ % 3 == 0) skyline_length_ += skyline_length_ / 5;
    }
    return Outcome::kStopped;
  }

  /// Searches in short tries for what is left after guesses; that there is nothing proves a guess wrong only.
  Outcome runSiblings(int64_t length) {
    const int64_t end = budget_.left() - length;
    while (budget_.left() > end && !budget_.exhausted()) {
      Siblings siblings = joinSiblings(instance_, siblings_variant_++, budget_);
      constexpr int64_t kWorkPerItem = 100;  // what it costs to set up a search
      if (!budget_.spend(kWorkPerItem * static_cast<int64_t>(instance_.size()))) break;
      if (siblings.joined.empty()) continue;
      Instance joined(siblings.problem);
      SkylineSearch skyline(joined, capacity_, statesFor(siblings_length_), budget_);
      if (skyline.run(0, siblings_length_) == Outcome::kFound) {
        offsets_ = siblings.toItems(joined.toSolution(skyline.offsets()).offsets);
        return Outcome::kFound;
      }
      if (siblings_variant_ % 10 == 0) siblings_length_ += siblings_length_ / 10;
    }
    return Outcome::kStopped;
  }

  /// As many as are worth their memory, a power of two.
  static size_t statesFor(int64_t work) {
    constexpr int64_t kWorkPerState = 100, kLeast = 1 << 8, kMost = 1 << 20;
    return std::bit_ceil(static_cast<size_t>(std::clamp(work / kWorkPerState, kLeast, kMost)));
  }

  const Instance& instance_;
  const int64_t capacity_;
  Budget& budget_;
  const int64_t shortest_;
  BranchAndBound offsets_search_;
  std::optional<SkylineSearch> skyline_;
  int64_t try_length_ = shortest_;
  int64_t skyline_length_ = shortest_ / 2 + 1;
  int64_t siblings_length_ = shortest_ / 5 + 1;
  uint64_t variant_ = 0;
  uint64_t skyline_variant_ = 0;
  uint64_t siblings_variant_ = 0;
  std::vector<int64_t> offsets_;
};

/// The search recurses once for each item and knows its neighbours by lists; both end somewhere.
constexpr size_t kMostItems = 5000;

}  // namespace

SearchResult searchWithin(const Instance& instance, int64_t capacity, Budget& budget) {
  int64_t n = static_cast<int64_t>(instance.size());
  if (instance.size() > kMostItems || !budget.spend(n * n)) return {};
  Schedule schedule(instance, capacity, 20 * n * n, budget);
  Outcome outcome = schedule.run();
  if (outcome == Outcome::kFound) return {schedule.result(), true};
  return {std::nullopt, outcome == Outcome::kNone};
}

}  // namespace gpuc::placement
