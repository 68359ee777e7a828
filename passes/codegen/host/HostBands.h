//===- HostBands.h - Which rows of an operand a kernel's tiles touch --------===//
#pragma once

#include "passes/codegen/host/HostLoops.h"

namespace gpuc::codegen {

/// A kernel's tiles in bands of equally many: band i writes the i-th of `count` equal parts of each result.
/// Of an operand that is `cut` it reads that part alone, of others what it likes.
struct HostBands {
  int64_t count = 0;     ///< 0: there are none.
  std::vector<bool> cut; ///< For each argument, then for each result.

  HostBands(const Kernel &kernel, const HostLoops &loops);
};

} // namespace gpuc::codegen
