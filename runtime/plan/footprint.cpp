#include "runtime/plan/footprint.h"

#include <cstdlib>
#include <numeric>

namespace gpuc {

ByteRange overRepeats(ByteRange first, const fb::Operand& operand, std::span<const uint64_t> counts,
                      uint32_t outermost) {
  for (uint32_t d = 0; d < counts.size(); ++d) {
    const int64_t moved = strideOf(operand, outermost + d) * static_cast<int64_t>(counts[d] - 1);
    (moved < 0 ? first.begin : first.end) += static_cast<uint64_t>(moved);
  }
  return first;
}

Footprint footprintOf(const fb::Plan& plan, const fb::Operand& operand, std::span<const uint64_t> counts,
                      uint32_t outermost) {
  const fb::Buffer& buffer = *plan.buffers()->Get(operand.buffer());
  const uint64_t begin = buffer.offset() + operand.offset();
  const uint64_t slots = (plan.input_slots() - 1) * buffer.slot_stride();
  Footprint footprint = {overRepeats({begin, begin + operand.size() + slots}, operand, counts, outermost),
                         operand.size(), buffer.slot_stride()};
  for (uint32_t d = 0; d < counts.size(); ++d)
    if (counts[d] > 1)  // a stride that is never taken may be any number
      footprint.step =
          std::gcd(footprint.step, static_cast<uint64_t>(std::abs(strideOf(operand, outermost + d))));
  return footprint;
}

}  // namespace gpuc
