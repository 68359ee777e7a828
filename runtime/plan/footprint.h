// Which bytes of the arena an operand touches, over the iterations of the repeats around it and the slots of
// inputs. verify_programs.cpp, which believes nothing of the file yet, computes the same in wider numbers.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/plan/access.h"

namespace gpuc {

/// Bytes [begin, end) of the arena.
struct ByteRange {
  uint64_t begin, end;

  bool meets(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

/// All that lies at `first` in the first iterations and moves with `operand`'s strides. `counts` are those of
/// the repeats around it, outermost first, of which the first takes the stride of depth `outermost`.
ByteRange overRepeats(ByteRange first, const fb::Operand& operand, std::span<const uint64_t> counts,
                      uint32_t outermost = 0);

/// All that an operand ever touches.
struct Footprint {
  ByteRange bytes;
  uint64_t size;  // touched at a time
  uint64_t step;  // the places of these differ by multiples of it; 0: there is one
};

/// In any slot of an input, and with `counts` and `outermost` as above.
Footprint footprintOf(const fb::Plan& plan, const fb::Operand& operand, std::span<const uint64_t> counts,
                      uint32_t outermost = 0);

}  // namespace gpuc
