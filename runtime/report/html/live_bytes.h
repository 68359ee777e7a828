// How many bytes of the arena hold something at each command of a program.
#pragma once

#include <map>

#include "runtime/report/html/timeline.h"

namespace gpuc {

/// What fills the arena at one instant. Bytes in which two buffers lie, as where a result is written over an
/// operand, count once.
struct Peak {
  uint32_t step = 0;                             // the first at which most bytes hold something
  uint64_t bytes = 0;                            // these
  std::map<fb::Category, uint64_t> by_category;  // they, by what they are for
};

/// All bytes of a buffer, its slots and what lies between them among them.
uint64_t extentOf(const fb::Plan& plan, const fb::Buffer& buffer);

Peak peakOf(const fb::Plan& plan, const Timeline& timeline);

}  // namespace gpuc
