// Ranks that have ended before they came to the others, which else would wait for them until their patience
// ends, and in MPI for ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuc {

/// By which ranks of one machine are found among its processes.
struct RanksHere {
  std::string variable;  // of the environment, which says the rank
  int64_t rank = 0;
  int64_t ranks =
      0;  // all are on this machine; 0: they are not, or that is not known, and none is looked for
};

/// What /proc says: a process is that of a rank if it was started with its number in the environment, or is a
/// child of such a one. Where that cannot be told, as in a container of its own, no rank is missed.
class AbsentRanks {
 public:
  explicit AbsentRanks(RanksHere here);

  /// A rank that has ended, for so long that it is sure; of several the first. Looks once in a second.
  std::optional<int64_t> look();

  /// What there is to say of it.
  static std::string wordsOf(int64_t rank);
  /// Of which rank these are the words; none: they are others.
  static std::optional<int64_t> rankOf(const std::string& words);

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    bool ever = false;
    Clock::time_point absent_since;
  };

  RanksHere here_;
  std::vector<std::string> own_;  // the environment of this process
  int64_t starter_ = 0;           // the process of the launcher that has started it
  Clock::time_point looked_at_;
  std::vector<Seen> seen_;  // by rank; empty: none is looked for
};

}  // namespace gpuc
