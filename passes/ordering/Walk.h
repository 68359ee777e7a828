// Another order, as good as the one at hand.
#pragma once

#include "passes/ordering/Problem.h"

namespace gpuc::ordering {

/// An order in which at no time more bytes are live than in `order` at most, at the end of a random walk from
/// there: what orders of one peak leave to chance is how their buffers fit beside one another. It is a
/// function of problem, order and seed alone.
Order walk(const Problem& problem, const Order& order, uint64_t seed);

}  // namespace gpuc::ordering
