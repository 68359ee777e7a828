// The one rule by which reading a plan takes time and memory in proportion to its file, whatever stands in
// it: its parts stand for themselves. In a FlatBuffer any number of tables may lead to one and the same
// vector, and vectors may overlap, so that a small file holds a tree of any size. A compiler writes no such
// file.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"

namespace gpuc {

/// What following every offset from the root comes to, parts counted as often as they are reached.
struct Reach {
  uint64_t parts = 0;  // tables, vectors, strings
  uint64_t bytes = 0;
};

/// Walks through the payload until it has come to more bytes than there are. Errors: an offset leads out of
/// the payload; nested deeper than `most_depth`; parts are shared, and at which field that came out. What
/// passes is walked through again, by whatever walks through it once, in time linear in its bytes.
Result<Reach> reachOf(std::string_view payload, int most_depth);

}  // namespace gpuc
