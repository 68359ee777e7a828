// The solvers' view of a problem: only buffers that occupy bytes, times replaced by their ranks, conflicts
// answered in constant time for almost all pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "passes/placement/Problem.h"

namespace gpuc::placement {

/// A buffer of the instance. Sections are the instants of time that matter: those at which the live buffers
/// are no subset of what is live at another instant, numbered in time. The item is live in sections [first,
/// last); two intervals intersect exactly if they share a section.
struct Item {
  int64_t size;  // bytes occupied: a multiple of alignment
  int64_t alignment;
  uint32_t first;
  uint32_t last;
  double duration;  // upper - lower, which may pass 2^63
  bool has_extra;   // named by a conflict pair
};

class Instance {
 public:
  explicit Instance(const Problem& problem);

  size_t size() const { return items_.size(); }
  const Item& operator[](size_t item) const { return items_[item]; }
  size_t sectionCount() const { return section_count_; }
  int64_t lowerBound() const { return lower_bound_; }

  /// Bytes live in each section.
  const std::vector<int64_t>& sectionTotals() const { return section_totals_; }

  bool conflict(size_t a, size_t b) const {
    const Item &x = items_[a], &y = items_[b];
    if (x.first < y.last && y.first < x.last) return true;
    return x.has_extra && y.has_extra && std::binary_search(extra_[a].begin(), extra_[a].end(), b);
  }

  /// The items with which conflict pairs name `item`, in rising order.
  const std::vector<size_t>& extraConflicts(size_t item) const { return extra_[item]; }

  /// The solution of the problem from offsets of the items; buffers without bytes are put at 0.
  Solution toSolution(const std::vector<int64_t>& item_offsets) const;

 private:
  void addItems(const Problem& problem);
  void addExtraConflicts(const Problem& problem);
  void sumSections();

  std::vector<Item> items_;
  std::vector<size_t> buffer_of_;  // item → index in the problem
  std::vector<std::vector<size_t>> extra_;
  std::vector<int64_t> section_totals_;
  size_t buffer_count_ = 0;
  size_t section_count_ = 0;
  int64_t lower_bound_ = 0;
};

/// The smallest multiple of `alignment` at or above `offset`.
inline int64_t alignUp(int64_t offset, int64_t alignment) {
  int64_t rest = offset % alignment;
  return rest == 0 ? offset : offset + (alignment - rest);
}

}  // namespace gpuc::placement
