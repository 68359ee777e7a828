// Which bytes of the arena nobody needs any more: whoever reads them has made a mistake.
#pragma once

#include <unordered_map>
#include <vector>

#include "runtime/plan/access.h"
#include "runtime/plan/footprint.h"

namespace gpuc {

/// Ranges of the arena, each list in the order of its addresses, none empty.
struct DeadBytes {
  /// When a run begins: all but inputs, variables, constants and what streams besides the main one write.
  std::vector<ByteRange> at_start;

  /// From the end of a command of the main stream on, what was needed until then; of a loop, when all of its
  /// iterations are done. Of a command in a loop it is dead in each iteration, one after the other.
  std::unordered_map<const fb::Command*, std::vector<ByteRange>> behind;
};

/// By lifetimesOf(). What lies behind a command within a parallel is dead for a thread that executes it part
/// after part; where threads take its parts side by side it is dead behind the parallel, whose list has it
/// too.
DeadBytes deadBytesOf(const fb::Plan& plan, const fb::Program& program);

}  // namespace gpuc
