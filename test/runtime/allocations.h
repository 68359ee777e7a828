// What a session's runs allocate. Needs the hook on every allocation (runtime/tooling/allocation_hook.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/gpuc.h"
#include "runtime/tooling/allocation_hook.h"

namespace gpuc::test {

/// How often 20 runs allocate, the fewest of some rounds: a thread that the system first lets begin in one of
/// them allocates under AddressSanitizer, once; what a run allocates, each round does. -1 if a run fails.
inline int64_t allocationsInRuns(Session& session, std::span<const HostTensorView> inputs) {
  int64_t fewest = INT64_MAX;
  for (int round = 0; round < 5 && fewest != 0; ++round) {
    const AllocationCount before = allocationCount();
    for (int run = 0; run < 20; ++run)
      if (!session.run(ProgramId{0}, inputs).ok() || !session.wait().ok()) return -1;
    fewest = std::min(fewest, allocationCount().total() - before.total());
  }
  return fewest;
}

}  // namespace gpuc::test
