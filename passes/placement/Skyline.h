// Branch and bound over the skyline: what to put into the corners of its valleys. Strong where little or no
// memory is to spare, since a corner that nothing fits into is seen at once.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/placement/Budget.h"
#include "passes/placement/Instance.h"

namespace gpuc::placement {

/// The skyline is the height up to which each section is taken. A valley is a run of sections at one height
/// with higher ones, walls, on both sides. In any placement in which every item rests on something, what
/// comes next in the valley's first section either begins there, ends in the valley and lies on its floor, or
/// lies at least as high as the lower wall or as an item in the rest of the valley: then the section's floor
/// rises, at the cost of bytes that it has to spare. The same holds for the last section. The search takes
/// the corner with the fewest ways on; where a section has nothing to spare, these are few.
class SkylineSearch {
 public:
  /// For instances without conflict pairs. Remembers up to `states`, a power of two, states that failed.
  SkylineSearch(const Instance& instance, int64_t capacity, size_t states, Budget& budget);

  /// Searches for at most `limit` steps. Variant 0 tries the longest item first; others have other
  /// preferences. What one variant has ruled out no other looks at again. That there is no placement rests on
  /// 64-bit hashes being distinct. Not to be called again once a placement is found.
  Outcome run(uint64_t variant, int64_t limit);

  /// Item → offset, once a placement is found.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  /// Sections [first, last).
  struct Range {
    uint32_t first, last;
  };
  struct Corner {
    Range valley;
    bool at_end;   // in the valley's last section, not in its first
    int64_t wall;  // the height of the lower wall
    int64_t ways;
  };
  /// An item that is put down at an offset, or a section's floor that rises to it.
  struct Move {
    int64_t item;  // kLift: none
    uint32_t section;
    int64_t offset;
    double preference;
  };
  struct Done {
    int64_t item;
    uint32_t section;
    int64_t former_height;
  };
  static constexpr int64_t kLift = -1;

  void prefer(uint64_t variant);
  Outcome search(Range range, size_t depth);
  Outcome descend(Range range, size_t depth);
  Outcome searchPieces(Range range, size_t depth);
  Outcome tryMoves(Range range, size_t first_move, size_t depth);
  bool step(Range range);
  bool isDead(Range range);

  bool isCutApart(Range range) const;
  bool chooseCorner(Range range, Corner& best) const;
  int64_t waysAt(const Corner& corner) const;
  bool isWithin(size_t item, Range valley) const;
  void gatherMoves(const Corner& corner);
  void addItem(const Corner& corner, size_t item, size_t first_move);
  void addLift(const Corner& corner);

  void apply(const Move& move);
  void takeBackTo(size_t count);
  void setHeight(uint32_t section, int64_t height);
  int64_t slack(uint32_t section) const { return capacity_ - heights_[section] - totals_[section]; }
  static uint32_t sectionOf(const Corner& corner) {
    return corner.at_end ? corner.valley.last - 1 : corner.valley.first;
  }
  const std::vector<uint32_t>& itemsAt(const Corner& corner) const {
    return corner.at_end ? ends_[corner.valley.last] : starts_[corner.valley.first];
  }

  const Instance& instance_;
  const int64_t capacity_;
  Budget& budget_;
  std::vector<int64_t> heights_;     // section → the skyline
  std::vector<int64_t> totals_;      // section → bytes of its unplaced items
  std::vector<uint64_t> hashes_;     // section → of its height and the unplaced items that start in it
  std::vector<uint32_t> crossings_;  // section → unplaced items that live in it and in the one before
  std::vector<std::vector<uint32_t>> starts_;  // section → items
  std::vector<std::vector<uint32_t>> ends_;    // section → items whose last section is the one before
  std::vector<char> placed_;
  std::vector<int64_t> offsets_;
  std::vector<double> preferences_;
  std::vector<Done> done_;
  std::vector<Move> moves_;
  std::vector<uint64_t> path_;  // states that are being searched
  std::vector<uint64_t> dead_;  // states known to fail, each at its hash's place until another needs it
  int64_t remaining_ = 0;
};

}  // namespace gpuc::placement
