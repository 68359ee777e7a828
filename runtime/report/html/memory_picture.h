// The arena while a program runs.
#pragma once

#include <vector>

#include "runtime/plan/live_bytes.h"
#include "runtime/report/inspect.h"
#include "runtime/report/residuals.h"

namespace gpuc::html {

/// The key to the colours of all pictures of memory.
std::string memoryKey();

/// x is time in commands, y the place in bytes. A rectangle is a buffer while it holds something; its title
/// says what of the model that is. The peak is marked, and told by categories.
void drawMemory(const fb::Plan& plan, const fb::Program& program, const Timeline& timeline,
                const std::vector<Residual>& residuals, const TextSink& sink);

}  // namespace gpuc::html
