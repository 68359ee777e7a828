// Bettering a greedy's placement by changing its order.
#pragma once

#include <cstdint>

#include "passes/placement/Budget.h"
#include "passes/placement/Fit.h"
#include "passes/placement/Orders.h"

namespace gpuc::placement {

/// Again and again takes an item that reaches the height, moves it to an earlier place in the order and
/// places all anew; keeps what is not higher. Ends at a height of `goal` or less, or with the budget. `order`
/// is first-fit; the result is never higher than its placement, but for one of no height if the clock did not
/// leave time for that.
Placement improveOrder(const Instance& instance, Order order, int64_t goal, uint64_t seed, Budget& budget);

}  // namespace gpuc::placement
