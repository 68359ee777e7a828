// Repeats that the threads take by bands of rows. Each row of a recurrent network's batch goes through all
// time steps without the others. A thread that takes a band of rows through all iterations joins the others
// once, and finds what it reads where it wrote it. Commands that are shared one by one join at each of them,
// and those of a small network are too short for that.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/access.h"

namespace gpuc {

/// In how many bands of equally many rows `repeat` may be executed, each band through all iterations in a
/// thread of its own: the most that there are, of at most `most`. 1 if a command has no rows to cut or needs
/// those of another band, if bytes of one band are another's at another time, or if bits could change.
/// `outer_counts` are those of the repeats around it, outermost first. Takes time quadratic in the number of
/// operands, of which it looks at a few hundred at most.
int bandsOf(const fb::Plan& plan, const fb::Repeat& repeat, const std::vector<uint64_t>& outer_counts,
            int most);

}  // namespace gpuc
