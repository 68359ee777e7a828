#include "runtime/plan/footprint.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

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

std::vector<Loop> loopsOf(const fb::Operand& operand, std::span<const uint64_t> counts, uint32_t outermost) {
  std::vector<Loop> loops;
  loops.reserve(counts.size());
  for (uint32_t d = 0; d < counts.size(); ++d)
    loops.push_back({strideOf(operand, outermost + d), static_cast<int64_t>(counts[d])});
  return loops;
}

Footprint footprintOf(const fb::Plan& plan, const fb::Operand& operand, std::span<const uint64_t> counts,
                      uint32_t outermost) {
  const fb::Buffer& buffer = *plan.buffers()->Get(operand.buffer());
  const auto begin = static_cast<int64_t>(buffer.offset() + operand.offset());
  const auto size = static_cast<int64_t>(operand.size());
  std::vector<Loop> loops = loopsOf(operand, counts, outermost);
  loops.push_back({static_cast<int64_t>(buffer.slot_stride()), static_cast<int64_t>(plan.input_slots())});
  Footprint footprint = {overLoops({begin, begin + size}, loops), size, 0};
  for (Loop loop : loops)
    if (loop.count > 1)  // a stride that is never taken may be any number
      footprint.step = std::gcd(footprint.step, std::abs(loop.stride));
  return footprint;
}

}  // namespace gpuc
