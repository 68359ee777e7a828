#include "passes/placement/Skyline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "passes/placement/Hash.h"

namespace gpuc::placement {
namespace {

constexpr int64_t kNoWall = INT64_MAX;

/// The search recurses once for each choice, and a floor may rise in very small steps.
constexpr size_t kMostDepth = 5000;

uint64_t hashOfItem(uint32_t item) { return mix(item, UINT64_MAX); }
uint64_t hashOfHeight(uint32_t section, int64_t height) {
  return mix(section, static_cast<uint64_t>(height));
}

}  // namespace

SkylineSearch::SkylineSearch(const Instance& instance, int64_t capacity, size_t states, Budget& budget)
    : instance_(instance),
      capacity_(capacity),
      budget_(budget),
      heights_(instance.sectionCount(), 0),
      totals_(instance.sectionTotals()),
      hashes_(instance.sectionCount(), 0),
      crossings_(instance.sectionCount(), 0),
      starts_(instance.sectionCount()),
      ends_(instance.sectionCount() + 1),
      placed_(instance.size(), false),
      offsets_(instance.size(), 0),
      preferences_(instance.size(), 0),
      dead_(states, 0) {
  for (uint32_t i = 0; i < instance.size(); ++i) {
    const Item& item = instance[i];
    starts_[item.first].push_back(i);
    ends_[item.last].push_back(i);
    hashes_[item.first] ^= hashOfItem(i);
    for (uint32_t s = item.first + 1; s < item.last; ++s) ++crossings_[s];
  }
  for (uint32_t s = 0; s < instance.sectionCount(); ++s) hashes_[s] ^= hashOfHeight(s, 0);
}

Outcome SkylineSearch::run(uint64_t variant, int64_t limit) {
  if (instance_.lowerBound() > capacity_) return Outcome::kNone;
  remaining_ = limit;
  prefer(variant);
  return search({0, static_cast<uint32_t>(instance_.sectionCount())}, 0);
}

void SkylineSearch::prefer(uint64_t variant) {
  const double most = variant == 0 ? 0 : 0.15;
  for (uint32_t i = 0; i < instance_.size(); ++i) {
    const Item& item = instance_[i];
    double sections = item.last - item.first, size = static_cast<double>(item.size);
    const double properties[] = {sections, sections * size, size};
    preferences_[i] = varied(properties[variant % 3], i, variant, most);
  }
}

/// Places all unplaced items of the range. Unless they are found, all is as it was before.
Outcome SkylineSearch::search(Range range, size_t depth) {
  const size_t done = done_.size(), moves = moves_.size(), states = path_.size();
  Outcome outcome = depth < kMostDepth ? descend(range, depth) : Outcome::kStopped;
  if (outcome == Outcome::kNone)
    for (size_t k = states; k < path_.size(); ++k) dead_[path_[k] % dead_.size()] = path_[k];
  path_.resize(states);
  moves_.resize(moves);
  if (outcome != Outcome::kFound) takeBackTo(done);
  return outcome;
}

/// Makes the moves that have no alternative, up to the first choice.
Outcome SkylineSearch::descend(Range range, size_t depth) {
  for (;;) {
    while (range.first < range.last && totals_[range.first] == 0) ++range.first;
    while (range.first < range.last && totals_[range.last - 1] == 0) --range.last;
    if (range.first == range.last) return Outcome::kFound;
    if (isCutApart(range)) return searchPieces(range, depth);
    if (!step(range)) return Outcome::kStopped;

    Corner corner;
    if (isDead(range) || !chooseCorner(range, corner)) return Outcome::kNone;
    const size_t first_move = moves_.size();
    gatherMoves(corner);
    if (moves_.size() == first_move) return Outcome::kNone;
    if (moves_.size() > first_move + 1) return tryMoves(range, first_move, depth);
    apply(moves_.back());
    moves_.pop_back();
  }
}

Outcome SkylineSearch::tryMoves(Range range, size_t first_move, size_t depth) {
  const size_t last_move = moves_.size(), mark = done_.size();
  for (size_t k = first_move; k < last_move; ++k) {
    apply(moves_[k]);
    Outcome outcome = search(range, depth + 1);
    if (outcome != Outcome::kNone) return outcome;
    takeBackTo(mark);
  }
  return Outcome::kNone;
}

bool SkylineSearch::isCutApart(Range range) const {
  for (uint32_t s = range.first + 1; s < range.last; ++s)
    if (crossings_[s] == 0) return true;
  return false;
}

/// Solves on its own each piece of the range that no unplaced item leaves, the shortest first.
Outcome SkylineSearch::searchPieces(Range range, size_t depth) {
  std::vector<Range> pieces = {{range.first, range.first + 1}};
  for (uint32_t s = range.first + 1; s < range.last; ++s) {
    if (crossings_[s] == 0) pieces.push_back({s, s});
    ++pieces.back().last;
  }
  std::sort(pieces.begin(), pieces.end(), [](Range a, Range b) {
    return std::pair(a.last - a.first, a.first) < std::pair(b.last - b.first, b.first);
  });
  for (Range piece : pieces)
    if (Outcome outcome = search(piece, depth + 1); outcome != Outcome::kFound) return outcome;
  return Outcome::kFound;
}

/// Counts one node of the tree; false when the search has to stop.
bool SkylineSearch::step(Range range) {
  constexpr int64_t kWork = 60, kWorkPerSection = 3;
  int64_t work = kWork + kWorkPerSection * (range.last - range.first);
  remaining_ -= work;
  return budget_.spend(work) && remaining_ > 0;
}

/// Whether the state of the range is known to fail; otherwise it is being searched from now on. The state is
/// which items are unplaced, and the skyline below them.
bool SkylineSearch::isDead(Range range) {
  uint64_t state = 0;
  for (uint32_t s = range.first; s < range.last; ++s) state ^= hashes_[s];
  if (dead_[state % dead_.size()] == state) return true;
  path_.push_back(state);
  return false;
}

/// The corner with the fewest ways on, of several the one in the shortest valley; false if some corner has
/// none.
bool SkylineSearch::chooseCorner(Range range, Corner& best) const {
  best.ways = std::numeric_limits<int64_t>::max();
  for (uint32_t first = range.first, last; first < range.last; first = last) {
    const int64_t floor = heights_[first];
    for (last = first + 1; last < range.last && heights_[last] == floor;) ++last;
    int64_t left = first == range.first ? kNoWall : heights_[first - 1];
    int64_t right = last == range.last ? kNoWall : heights_[last];
    if (left < floor || right < floor) continue;
    for (bool at_end : {false, true}) {
      Corner corner{{first, last}, at_end, std::min(left, right), 0};
      corner.ways = waysAt(corner);
      if (corner.ways == 0) return false;
      if (corner.ways < best.ways ||
          (corner.ways == best.ways && last - first < best.valley.last - best.valley.first))
        best = corner;
    }
  }
  return true;
}

/// How many items could lie in the corner, and whether its floor may rise; alignment is not looked at.
int64_t SkylineSearch::waysAt(const Corner& corner) const {
  int64_t ways = slack(sectionOf(corner)) > 0 ? 1 : 0;
  for (uint32_t item : itemsAt(corner)) ways += isWithin(item, corner.valley) ? 1 : 0;
  return ways;
}

bool SkylineSearch::isWithin(size_t item, Range valley) const {
  return !placed_[item] && instance_[item].first >= valley.first && instance_[item].last <= valley.last;
}

/// Adds to moves_ what can be done in the corner, the preferred first.
void SkylineSearch::gatherMoves(const Corner& corner) {
  const size_t first_move = moves_.size();
  for (uint32_t item : itemsAt(corner))
    if (isWithin(item, corner.valley)) addItem(corner, item, first_move);
  std::sort(moves_.begin() + static_cast<ptrdiff_t>(first_move), moves_.end(),
            [](const Move& a, const Move& b) {
              return a.preference != b.preference ? a.preference > b.preference : a.item < b.item;
            });
  if (slack(sectionOf(corner)) > 0) addLift(corner);
}

void SkylineSearch::addItem(const Corner& corner, size_t item, size_t first_move) {
  const Item& it = instance_[item];
  const int64_t floor = heights_[corner.valley.first];
  const int64_t offset = alignUp(floor, it.alignment);
  if (offset != floor)
    for (uint32_t s = it.first; s < it.last; ++s)
      if (slack(s) < offset - floor) return;
  for (size_t k = first_move; k < moves_.size(); ++k) {
    const Item& other = instance_[static_cast<size_t>(moves_[k].item)];
    bool is_twin = other.first == it.first && other.last == it.last && other.size == it.size &&
                   other.alignment == it.alignment;
    if (is_twin) return;
  }
  // What ends level with a wall makes two valleys one, and seldom lies there by chance.
  double preference = preferences_[item] * (offset + it.size == corner.wall ? 2 : 1);
  moves_.push_back({static_cast<int64_t>(item), 0, offset, preference});
}

/// No item comes to lie on the corner's floor: what does come there is as high as the lower wall, or lies on
/// an item in the rest of the valley.
void SkylineSearch::addLift(const Corner& corner) {
  const uint32_t section = sectionOf(corner);
  const Range valley = corner.valley;
  const Range rest =
      corner.at_end ? Range{valley.first, valley.last - 1} : Range{valley.first + 1, valley.last};
  int64_t least = INT64_MAX;
  for (uint32_t s = rest.first; s < rest.last; ++s)
    for (uint32_t item : starts_[s])
      if (isWithin(item, rest)) least = std::min(least, instance_[item].size);
  const int64_t floor = heights_[section];
  int64_t rise = std::min(least, corner.wall - floor);
  if (rise <= slack(section)) moves_.push_back({kLift, section, floor + rise, 0});
}

void SkylineSearch::apply(const Move& move) {
  if (move.item == kLift) {
    done_.push_back({kLift, move.section, heights_[move.section]});
    setHeight(move.section, move.offset);
    return;
  }
  const uint32_t item = static_cast<uint32_t>(move.item);
  const Item& it = instance_[item];
  done_.push_back({move.item, 0, heights_[it.first]});
  placed_[item] = true;
  offsets_[item] = move.offset;
  hashes_[it.first] ^= hashOfItem(item);
  for (uint32_t s = it.first; s < it.last; ++s) {
    setHeight(s, move.offset + it.size);
    totals_[s] -= it.size;
    if (s > it.first) --crossings_[s];
  }
}

/// Undoes the latest moves until `count` of them are left.
void SkylineSearch::takeBackTo(size_t count) {
  for (; done_.size() > count; done_.pop_back()) {
    const Done& done = done_.back();
    if (done.item == kLift) {
      setHeight(done.section, done.former_height);
      continue;
    }
    const uint32_t item = static_cast<uint32_t>(done.item);
    const Item& it = instance_[item];
    placed_[item] = false;
    hashes_[it.first] ^= hashOfItem(item);
    for (uint32_t s = it.first; s < it.last; ++s) {
      setHeight(s, done.former_height);
      totals_[s] += it.size;
      if (s > it.first) ++crossings_[s];
    }
  }
}

void SkylineSearch::setHeight(uint32_t section, int64_t height) {
  hashes_[section] ^= hashOfHeight(section, heights_[section]) ^ hashOfHeight(section, height);
  heights_[section] = height;
}

}  // namespace gpuc::placement
