// What a plan could have traded for memory.
#pragma once

#include <vector>

#include "runtime/report/compiler_files.h"
#include "runtime/report/inspect.h"

namespace gpuc::html {

/// x is the arena, y the predicted time of a step, of each plan that there could have been.
void drawTradeoff(const std::vector<TradeoffPoint>& points, const TextSink& sink);

}  // namespace gpuc::html
