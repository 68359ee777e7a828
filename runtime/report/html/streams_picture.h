// The commands of a program on its streams.
#pragma once

#include "runtime/plan/timeline.h"
#include "runtime/report/inspect.h"

namespace gpuc::html {

/// A lane for each stream, x as in the picture of memory; lines lead from what is recorded to who waits for
/// it.
void drawStreams(const fb::Plan& plan, const fb::Program& program, const Timeline& timeline,
                 const TextSink& sink);

}  // namespace gpuc::html
