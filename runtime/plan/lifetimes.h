// When each buffer of a program is needed. The compiler's lifetimes (passes/plan/Lifetimes.h) come from what
// it knows of the model; these from what stands in the plan, for who watches a plan run or says what it
// holds.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/access.h"
#include "runtime/plan/footprint.h"

namespace gpuc {

/// The buffer is needed from the beginning of command `first` to the end of command `last`, which is the same
/// or stands behind it in the same list: in each iteration of the loop whose commands these are, if they are
/// some. A loop is one command to the list that it stands in.
///
/// A buffer that only commands of one loop touch has a lifetime in each iteration if the first of them
/// overwrites all of it. Any other may hand something on to the next iteration: it is needed throughout.
struct BufferLifetime {
  uint32_t buffer;
  const fb::Command* first;
  const fb::Command* last;  // null: to the program's end and beyond it, as an output is

  // The same as positions on the main stream, on which each command has one and a loop those of its commands,
  // once: [lower, upper).
  uint32_t lower, upper;
};

struct ProgramLifetimes {
  std::vector<uint32_t> lasting;          // buffers that are needed throughout: inputs, variables, constants
  std::vector<BufferLifetime> lifetimes;  // of the others, by buffer; none of what no command touches
  std::vector<uint32_t> written_elsewhere;  // of the lasting ones, by streams besides the main one
  uint32_t positions = 0;                   // of the main stream; an output is needed at one more
};

/// Of the buffers of a verified plan. What other streams write is taken to be needed throughout, and what
/// they read to be needed until the end: no event is asked.
ProgramLifetimes lifetimesOf(const fb::Plan& plan, const fb::Program& program);

/// Where the buffer lies in the arena, with all of its slots.
ByteRange bytesOf(const fb::Plan& plan, uint32_t buffer);

}  // namespace gpuc
