#include "passes/placement/Problem.h"

#include <algorithm>

#include "passes/placement/LiveBytes.h"

namespace gpuc::placement {
namespace {

Status bufferError(const Buffer& buffer, const std::string& what) {
  return Status::error("buffer '" + buffer.id + "': " + what);
}

Status checkBuffer(const Buffer& buffer) {
  if (buffer.lower >= buffer.upper)
    return bufferError(buffer, "the interval [" + std::to_string(buffer.lower) + ", " +
                                   std::to_string(buffer.upper) +
                                   ") is empty; upper must be more than lower");
  if (buffer.size < 0) return bufferError(buffer, "the size " + std::to_string(buffer.size) + " is negative");
  if (buffer.alignment < 1)
    return bufferError(buffer, "the alignment " + std::to_string(buffer.alignment) + " is less than 1");
  return okStatus();
}

}  // namespace

Status checkProblem(const Problem& problem) {
  int64_t stacked = 0;
  for (const Buffer& buffer : problem.buffers) {
    GPUC_RETURN_IF_ERROR(checkBuffer(buffer));
    // Aligning the start and rounding the size cost less than one alignment each.
    int64_t room = 0;
    if (__builtin_add_overflow(buffer.size, buffer.alignment - 1, &room) ||
        __builtin_add_overflow(room, buffer.alignment - 1, &room) ||
        __builtin_add_overflow(stacked, room, &stacked))
      return bufferError(buffer, "the sizes up to here sum to 2^63 bytes or more");
  }
  for (auto [a, b] : problem.conflicts) {
    if (a >= problem.buffers.size() || b >= problem.buffers.size())
      return Status::error("a conflict names buffer " + std::to_string(std::max(a, b)) + " of only " +
                           std::to_string(problem.buffers.size()));
    if (a == b) return bufferError(problem.buffers[a], "it is listed as in conflict with itself");
  }
  if (problem.capacity && *problem.capacity < 0)
    return Status::error("the capacity " + std::to_string(*problem.capacity) + " is negative");
  return okStatus();
}

Peak findPeak(const Problem& problem) {
  std::vector<int64_t> starts;  // at no other time are there more bytes than before
  for (const Buffer& buffer : problem.buffers) starts.push_back(buffer.lower);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  auto placeOf = [&](int64_t time) {
    return std::lower_bound(starts.begin(), starts.end(), time) - starts.begin();
  };

  LiveBytes bytes(static_cast<int64_t>(starts.size()));
  for (const Buffer& buffer : problem.buffers)
    bytes.add(occupiedBytes(buffer), placeOf(buffer.lower), placeOf(buffer.upper));
  Peak peak;
  peak.bytes = bytes.peak();
  if (peak.bytes > 0) peak.time = starts[static_cast<size_t>(bytes.peakTime())];
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.size > 0 && buffer.lower <= peak.time && peak.time < buffer.upper) peak.live.push_back(i);
  }
  std::sort(peak.live.begin(), peak.live.end(), [&](size_t a, size_t b) {
    int64_t size_a = problem.buffers[a].size, size_b = problem.buffers[b].size;
    return size_a != size_b ? size_a > size_b : a < b;
  });
  return peak;
}

int64_t lowerBound(const Problem& problem) { return findPeak(problem).bytes; }

}  // namespace gpuc::placement
