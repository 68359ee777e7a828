// The one allocation of a session: all that a plan's programs read and write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/descriptor.h"
#include "runtime/base/status.h"

namespace gpuc {

/// The byte that check_memory fills the arena with: f64 and f32 of it are NaN, integers are -1.
inline constexpr uint8_t kPoison = 0xFF;

class Arena {
 public:
  /// Maps `bytes` of zeros, aligned to a page. With `guarded` they are poison, aligned to 64 bytes if their
  /// number is, and the first byte behind them is the first of a page that cannot be touched. Error: the
  /// system has no such memory.
  static Result<Arena> map(uint64_t bytes, bool guarded);

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

  /// Fills bytes [begin, end) with poison. They were touched, if they were, all the same.
  void poison(uint64_t begin, uint64_t end);

  /// Up to and with the last byte that is not poison, or was not when it was filled with it: at least what
  /// was written, for whoever wrote poison itself.
  uint64_t touchedBytes() const { return touchedBefore(bytes_); }

 private:
  /// The same if nothing from `end` on was.
  uint64_t touchedBefore(uint64_t end) const;

  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t touched_bytes_ = 0;  // of what is poison again
  Mapping mapping_;
};

/// Told of every arena that is mapped, with its length in bytes; for tests. Null to stop.
using ArenaObserver = void (*)(uint64_t bytes);
void observeArenas(ArenaObserver observer);

}  // namespace gpuc
