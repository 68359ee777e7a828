// Which bytes of the arena an operand touches over the iterations of the loops around it, or the slots of
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

/// How an operand moves with the loops around it, whose `counts` are outermost first.
std::vector<Loop> loopsOf(const fb::Operand& operand, std::span<const uint64_t> counts);

}  // namespace gpuc
