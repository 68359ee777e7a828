// Waiting awake, for as long as that is in nobody's way.
#pragma once

#include <cstdint>

namespace gpuc {

/// Who waits for another rank sees it soon as long as it yields its core, again and again, instead of
/// sleeping. But once it has yielded to somebody who computes, it gets the core back when that one's turn is
/// over, milliseconds later; a sleeper that has asked for short turns (Worker::Work::waits) has it at once.
class Yields {
 public:
  /// How often a wait may yield: who comes soon finds it awake, and who does not has the core.
  static constexpr int64_t most(bool is_crowded) { return is_crowded ? 4 : 1000; }
  /// Where what is waited for wakes the sleeper.
  static constexpr int64_t kMostIfWoken = 100;

  /// `before`: how often this wait has yielded; `most`: how often it may. False, without having yielded:
  /// it is time to sleep.
  bool next(int64_t before, int64_t most);

 private:
  bool have_others_run_ = false;  // in this wait, or so lately that it does not ask again
  int waits_without_ = 0;
};

}  // namespace gpuc
