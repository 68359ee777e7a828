#include "runtime/plan/footprint.h"

#include <algorithm>

namespace gpuc {

int64_t reachOf(Loop loop) {
  constexpr int64_t kFarthest = int64_t{1} << 50;  // four times the most that a buffer may hold
  int64_t reach;
  if (__builtin_mul_overflow(loop.stride, loop.count - 1, &reach))
    return loop.stride < 0 ? -kFarthest : kFarthest;
  return std::clamp(reach, -kFarthest, kFarthest);
}

ByteRange overLoops(ByteRange first, std::span<const Loop> loops) {
  for (Loop loop : loops) {
    const int64_t reach = reachOf(loop);
    (reach < 0 ? first.begin : first.end) += reach;
  }
  return first;
}

std::vector<Loop> loopsOf(const fb::Operand& operand, std::span<const uint64_t> counts) {
  std::vector<Loop> loops;
  loops.reserve(counts.size());
  for (uint32_t d = 0; d < counts.size(); ++d)
    loops.push_back({strideOf(operand, d), static_cast<int64_t>(counts[d])});
  return loops;
}

}  // namespace gpuc
