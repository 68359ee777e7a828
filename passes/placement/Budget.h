// How long a search may go on: counted in steps of work, so that the same problem ends at the same place on
// every machine, and, only where it was asked for, by the clock as well.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace gpuc::placement {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

inline bool hasPassed(const Deadline& deadline) {
  return deadline && std::chrono::steady_clock::now() >= *deadline;
}

/// How a search ended: with a placement, with the proof that there is none, or before either.
enum class Outcome { kFound, kNone, kStopped };

class Budget {
 public:
  Budget(int64_t work, Deadline deadline) : work_(work), deadline_(deadline) {}

  /// Takes `work` off; false when nothing is left. The clock is read only now and then.
  bool spend(int64_t work) {
    work_ -= work;
    unread_ += work;
    if (deadline_ && unread_ >= kWorkBetweenReadings) {
      unread_ = 0;
      if (hasPassed(deadline_)) work_ = 0;
    }
    return work_ > 0;
  }

  bool exhausted() const { return work_ <= 0; }
  int64_t left() const { return work_; }
  const Deadline& deadline() const { return deadline_; }

 private:
  static constexpr int64_t kWorkBetweenReadings = 100'000;  // a fraction of a millisecond

  int64_t work_;
  int64_t unread_ = kWorkBetweenReadings;  // so that a deadline in the past is seen at once
  Deadline deadline_;
};

}  // namespace gpuc::placement
