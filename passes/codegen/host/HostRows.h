//===- HostRows.h - Which rows of an operand a kernel's tiles touch ---------===//
#pragma once

#include "passes/codegen/host/HostLoops.h"

namespace gpuc::codegen {

/// A kernel's tiles by rows, equally many in each: row i writes the i-th of `count` equal parts of each
/// result. Of an operand that goes `byRows` it reads that part alone, of others what it likes.
struct HostRows {
  int64_t count = 0;        ///< 0: there are none.
  std::vector<bool> byRows; ///< For each argument, then for each result.

  HostRows(const Kernel &kernel, const HostLoops &loops);
};

} // namespace gpuc::codegen
