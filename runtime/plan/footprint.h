// Which bytes of the arena an operand touches, over the iterations of the repeats around it and the slots of
// inputs. verify_programs.cpp, which believes nothing of the file yet, computes the same in wider numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/access.h"

namespace gpuc {

/// Bytes [begin, end) of the arena.
struct ByteRange {
  int64_t begin, end;

  bool meets(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

/// Iterations 0 … count - 1 of a repeat, or slots of an input, each `stride` bytes on.
struct Loop {
  int64_t stride;
  int64_t count;
};

/// By how much the last iteration lies off the first. What lies farther off than any arena reaches is given
/// as that far off, so that nobody's numbers need be proven before they are added up.
int64_t reachOf(Loop loop);

/// The smallest range that holds `first` in all iterations of the loops.
ByteRange overLoops(ByteRange first, std::span<const Loop> loops);

/// How an operand moves with the repeats around it, whose `counts` are outermost first, and of which the
/// first takes the stride of depth `outermost`.
std::vector<Loop> loopsOf(const fb::Operand& operand, std::span<const uint64_t> counts,
                          uint32_t outermost = 0);

/// All that an operand ever touches.
struct Footprint {
  ByteRange bytes;
  int64_t size;  // touched at a time
  int64_t step;  // the places of these differ by multiples of it; 0: there is one
};

/// In any slot of an input, and with `counts` and `outermost` as above.
Footprint footprintOf(const fb::Plan& plan, const fb::Operand& operand, std::span<const uint64_t> counts,
                      uint32_t outermost = 0);

}  // namespace gpuc
