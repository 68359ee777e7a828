// An order in which few bytes are live at once.
#pragma once

#include "passes/ordering/Problem.h"

namespace gpuc::ordering {

struct Solution {
  Order order;
  int64_t peak = 0;
  int64_t bound = 0;  // no order has a lower peak
};

struct Limits {
  int64_t effort = 2'000'000;  // commands looked at
};

/// The given order, or one with a lower peak. It is a function of the problem and the limits alone.
Solution solve(const Problem& problem, const Limits& limits = {});

}  // namespace gpuc::ordering
