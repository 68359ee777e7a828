//===- StackDistance.h - How much was touched since a page was -----------------===//
//
// A cache that evicts what was used least recently still has a page if all others that were touched since fit
// beside it: Mattson, Gecsei, Slutz, Traiger, "Evaluation Techniques for Storage Hierarchies", 1970. Pages
// lie in the order of their last touch; a tree of sums counts those behind one: Bennett and Kruskal, "LRU
// Stack Processing", 1975.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gpuc {

class StackDistance {
public:
  explicit StackDistance(int64_t pages);

  /// Touches a page of [0, pages). Returns how many others were touched since it was; of one that never was,
  /// nothing.
  std::optional<int64_t> touch(int64_t page);

private:
  static constexpr int64_t kNever = -1;

  void add(int64_t slot, int64_t count);
  int64_t countUpTo(int64_t slot) const;
  void closeGaps();

  std::vector<int64_t> slots_;   ///< Of each page: its place in the order of touches.
  std::vector<int64_t> touched_; ///< Of each place: the page, or kNever where it was touched again.
  std::vector<int64_t> sums_;    ///< Fenwick's tree of places that hold a page.
  int64_t next_ = 0;             ///< The first place that is free.
  int64_t live_ = 0;             ///< Pages that have a place.
};

} // namespace gpuc
