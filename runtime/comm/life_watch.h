// Whether the other ranks of this machine live: known at once, without a word of theirs.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpuc {

/// A process, as others find it.
struct Life {
  uint64_t machine = 0;  // the same for all whose process numbers mean the same
  int64_t process = 0;

  static Life ofThisProcess();
};

class LifeWatch {
 public:
  struct Loss {
    int64_t rank;
    std::string why;  // "has died"
  };

  /// `lives`: of each rank. Those of other machines are not watched.
  LifeWatch(std::span<const Life> lives, int64_t rank, std::chrono::milliseconds patience);
  LifeWatch(LifeWatch&&) = default;
  LifeWatch& operator=(LifeWatch&&) = delete;
  ~LifeWatch();

  /// A rank that has ended, or is stopped for longer than `patience`; each is named once. Allocates only if
  /// there is one.
  std::optional<Loss> look();

  /// The same of those that have ended, which costs but a microsecond.
  std::optional<Loss> lookForEnded();

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    int64_t rank = 0;
    int64_t process = 0;
    std::optional<Clock::time_point> stopped_at = {};
    bool is_named = false;
  };

  std::chrono::milliseconds patience_;
  std::vector<Watched> watched_;
  std::vector<pollfd> handles_;  // of the same: readable once they have ended
};

}  // namespace gpuc
