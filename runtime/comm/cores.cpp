#include "runtime/comm/cores.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "runtime/comm/life_watch.h"

namespace gpuc {
namespace {

struct Cores {
  uint64_t machine = 0;
  cpu_set_t set = {};
};

bool doMeet(const Cores& one, const Cores& other) {
  cpu_set_t both;
  CPU_AND(&both, &one.set, &other.set);
  return one.machine == other.machine && CPU_COUNT(&both) > 0;
}

/// One, if they are more than 1,024, which sets of this size cannot name.
cpu_set_t setOfThisProcess() {
  cpu_set_t set = {};
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) CPU_SET(0, &set);
  return set;
}

}  // namespace

int64_t coresOfThisProcess() {
  const cpu_set_t set = setOfThisProcess();
  return CPU_COUNT(&set);
}

Result<CoreShare> shareCores(Communicator& ranks) {
  Cores mine;
  mine.machine = Life::ofThisProcess().machine;
  mine.set = setOfThisProcess();
  std::vector<Cores> all(static_cast<size_t>(ranks.size()));
  GPUC_RETURN_IF_ERROR(
      ranks.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  return CoreShare{CPU_COUNT(&mine.set), std::count_if(all.begin(), all.end(), [&](const Cores& other) {
                     return doMeet(mine, other);
                   })};
}

}  // namespace gpuc
