// Whether the parts of a parallel may be executed at once: none touches bytes that another one writes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/plan/footprint.h"

namespace gpuc {

/// The most operands of the commands of one parallel.
inline constexpr size_t kMostPartOperands = size_t{1} << 16;

/// The parts of a parallel, and by how much an operand moves from one to the next.
struct Parts {
  int64_t count;
  bool by_rows;
};

/// What the parts touch through one operand. Part i touches bytes of [window.begin, window.end), moved by
/// i · stride and by any multiples of `period`, which is |stride| times the number of parts.
struct PartTouch {
  ByteRange bytes;   // all of it
  ByteRange window;  // of the first part
  int64_t stride;    // 0: all parts touch the same
  int64_t period;
  bool written;
};

/// Of an operand that is `first` in the first iteration of all `loops` around its command but for the
/// parallel, and of a part `stride` bytes on in the next; of an input's slots there is a loop as well. If it
/// goes `by_rows`, `first` are all of its rows, and the stride counts for nothing.
PartTouch touchOfParts(Parts parts, ByteRange first, std::span<const Loop> loops, int64_t stride,
                       bool by_rows, bool written);

/// Two operands, by their numbers, of which nothing says that a part of one stays off what another part of
/// the other writes; they may be one. None if the parts stay apart: of what lies in bytes that are written,
/// each part has a window of its own, the same in each period.
///
/// It takes n log n time for n operands, whatever the numbers are. There are parts that stay apart in ways
/// which it does not see; the compiler makes none.
std::optional<std::pair<size_t, size_t>> findMeetingParts(std::span<const PartTouch> touches);

}  // namespace gpuc
