// How many bytes of the arena hold something at each command of a program.
#pragma once

#include <map>

#include "runtime/plan/plan.h"
#include "runtime/plan/timeline.h"

namespace gpuc {

/// What fills the arena at one instant. Bytes in which two buffers lie, as where a result is written over an
/// operand, count once.
struct Peak {
  uint32_t step = 0;                             // the first at which most bytes hold something
  uint64_t bytes = 0;                            // these, less what lies between slots
  std::map<fb::Category, uint64_t> by_category;  // they, by what they are for
};

/// All bytes of a buffer, its slots and what lies between them among them.
uint64_t extentOf(const fb::Plan& plan, const fb::Buffer& buffer);

Peak peakOf(const fb::Plan& plan, const Timeline& timeline);

/// What fills the arena at the peak of the program that has most bytes in use, in the categories of the
/// compiler's report. They add up to the arena's bytes.
MemoryByCategory memoryByCategory(const fb::Plan& plan);

}  // namespace gpuc
