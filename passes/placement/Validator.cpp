#include "passes/placement/Validator.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

namespace gpuc::placement {
namespace {

/// The bytes [begin, end) that a buffer occupies; begin == end for a buffer of size 0.
struct Extent {
  int64_t begin;
  int64_t end;
};

std::string show(const Buffer& buffer, Extent extent) {
  return "'" + buffer.id + "' in bytes [" + std::to_string(extent.begin) + ", " + std::to_string(extent.end) +
         ")";
}

Status fault(const Buffer& buffer, const std::string& what) {
  return Status::error("buffer '" + buffer.id + "' " + what);
}

Result<Extent> extentOf(const Buffer& buffer, int64_t offset) {
  if (offset < 0) return fault(buffer, "has the negative offset " + std::to_string(offset));
  if (offset % buffer.alignment != 0)
    return fault(buffer, "has the offset " + std::to_string(offset) +
                             ", which is no multiple of its alignment " + std::to_string(buffer.alignment));
  // Rounded up here once more, and not by the solver's function, so that an error there shows.
  int64_t units = buffer.size / buffer.alignment + (buffer.size % buffer.alignment != 0 ? 1 : 0);
  int64_t end = 0;
  if (__builtin_add_overflow(offset, units * buffer.alignment, &end))
    return fault(buffer, "at offset " + std::to_string(offset) + " ends beyond 2^63");
  return Extent{offset, end};
}

class Checker {
 public:
  Checker(const Problem& problem, const Solution& solution) : problem_(problem), solution_(solution) {}

  Status check() {
    GPUC_RETURN_IF_ERROR(checkProblem(problem_));
    if (solution_.offsets.size() != problem_.buffers.size())
      return Status::error(std::to_string(solution_.offsets.size()) + " offsets for " +
                           std::to_string(problem_.buffers.size()) + " buffers");
    GPUC_RETURN_IF_ERROR(checkExtents());
    GPUC_RETURN_IF_ERROR(checkPairs());
    return sweep();
  }

 private:
  Status checkExtents() {
    int64_t height = 0;
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      GPUC_ASSIGN_OR_RETURN(Extent extent, extentOf(buffer, solution_.offsets[i]));
      extents_.push_back(extent);
      if (buffer.size == 0) continue;
      if (problem_.capacity && extent.end > *problem_.capacity)
        return Status::error("buffer " + show(buffer, extent) + " ends beyond the capacity " +
                             std::to_string(*problem_.capacity));
      height = std::max(height, extent.end);
    }
    if (height != solution_.height)
      return Status::error("the height is said to be " + std::to_string(solution_.height) + " but is " +
                           std::to_string(height));
    return okStatus();
  }

  Status overlap(size_t a, size_t b, const char* why) const {
    return Status::error("buffers " + show(problem_.buffers[a], extents_[a]) + " and " +
                         show(problem_.buffers[b], extents_[b]) + " overlap " + why);
  }

  bool sharesBytes(size_t a, size_t b) const {
    const Extent &x = extents_[a], &y = extents_[b];
    return x.begin < x.end && y.begin < y.end && x.begin < y.end && y.begin < x.end;
  }

  Status checkPairs() const {
    for (auto [a, b] : problem_.conflicts)
      if (sharesBytes(a, b)) return overlap(a, b, "although they are listed as in conflict");
    return okStatus();
  }

  /// Walks through time with the live buffers ordered by offset. As long as these are disjoint, a new one
  /// overlaps one of them only if it overlaps a neighbour in that order.
  Status sweep() const {
    std::vector<std::tuple<int64_t, bool, size_t>> events;  // time, starts, buffer: ends come before starts
    for (size_t i = 0; i < extents_.size(); ++i) {
      if (problem_.buffers[i].size == 0) continue;
      events.emplace_back(problem_.buffers[i].lower, true, i);
      events.emplace_back(problem_.buffers[i].upper, false, i);
    }
    std::sort(events.begin(), events.end());
    std::map<int64_t, size_t> live;  // by the first byte
    for (auto [time, starts, buffer] : events) {
      if (!starts) {
        live.erase(extents_[buffer].begin);
        continue;
      }
      auto [place, is_new] = live.emplace(extents_[buffer].begin, buffer);
      if (!is_new) return overlap(place->second, buffer, "while both are live");
      if (place != live.begin() && sharesBytes(std::prev(place)->second, buffer))
        return overlap(std::prev(place)->second, buffer, "while both are live");
      if (std::next(place) != live.end() && sharesBytes(std::next(place)->second, buffer))
        return overlap(std::next(place)->second, buffer, "while both are live");
    }
    return okStatus();
  }

  const Problem& problem_;
  const Solution& solution_;
  std::vector<Extent> extents_;
};

}  // namespace

Status validate(const Problem& problem, const Solution& solution) {
  return Checker(problem, solution).check();
}

}  // namespace gpuc::placement
