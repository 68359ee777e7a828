#include "runtime/comm/transport/yields.h"

#include <sched.h>

#include <chrono>

namespace gpuc {
namespace {

/// A yield to nobody takes less than one.
constexpr std::chrono::microseconds kTurn{20};
/// A first yield costs a turn, too: so many waits do without before one tries again.
constexpr int kWaitsWithout = 8;

}  // namespace

bool Yields::next(int64_t before, int64_t most) {
  if (before == 0) have_others_run_ = waits_without_ > 0 && waits_without_-- > 0;
  if (have_others_run_ || before >= most) return false;
  const auto begin = std::chrono::steady_clock::now();
  ::sched_yield();
  have_others_run_ = std::chrono::steady_clock::now() - begin > kTurn;
  if (have_others_run_) waits_without_ = kWaitsWithout;
  return true;
}

}  // namespace gpuc
