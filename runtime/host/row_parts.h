// A parallel by rows, as a recurrent network's loop over time: each row of the batch goes through all steps
// without the others. A thread that takes some of the rows through all of them joins the others once, and
// finds what it reads where it wrote it. Commands that are shared one by one join at each of them, and those
// of a small network are too short for that.
#pragma once

#include <cstdint>

#include "runtime/plan/access.h"

namespace gpuc {

/// Into how many parts of equally many rows `parallel`, which is by rows, falls: the most, of at most `most`,
/// that divide its rows. 1 if bits could change: a product of fewer rows may be summed up in another order.
uint64_t rowPartsOf(const fb::Parallel& parallel, uint64_t most);

}  // namespace gpuc
