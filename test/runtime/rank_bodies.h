// What ranks do in tests, whatever carries what they say.
#pragma once

#include "runtime/comm/communicator.h"

namespace gpuc {

/// Sums of many lengths and all types, in place and not, are those that Communicator defines.
Result<int> addUpInTheirOrder(Communicator& ranks);

/// Shares of sums of several tensors, and what is gathered of them, are those that Shares defines.
Result<int> shareOutAndGather(Communicator& ranks);

/// Gathers and broadcasts of many lengths.
Result<int> handOnBytesOfAnyLength(Communicator& ranks);

/// Short and long ones in turn, and ranks that are late in turn: nobody writes what another has yet to read.
Result<int> mixCollectives(Communicator& ranks);

/// A sum of so many f32, checked.
Status addUp(Communicator& ranks, size_t elements);

}  // namespace gpuc
