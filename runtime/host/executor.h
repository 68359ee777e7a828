// Walks the commands of one stream. Nothing here allocates or fails.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/thread_pool.h"
#include "runtime/hal/device.h"
#include "runtime/host/command.h"
#include "runtime/host/delays.h"

namespace gpuc {

/// The last executions of one stream; older ones are overwritten.
class ProfileRing {
 public:
  explicit ProfileRing(size_t capacity) : events_(capacity) {}

  bool enabled() const { return !events_.empty(); }
  void add(const ProfileEvent& event) { events_[added_++ % events_.size()] = event; }
  void appendTo(std::vector<ProfileEvent>& list) const;

 private:
  std::vector<ProfileEvent> events_;
  uint64_t added_ = 0;
};

/// One stream of a program, ready to be handed to a worker.
struct StreamWalk {
  std::vector<HostCommand>* commands = nullptr;
  ThreadPool* pool = nullptr;
  ThreadPool* alone = nullptr;  // of one thread, for commands that are not spread
  ProfileRing* profile = nullptr;
  SpinPolicy policy;         // of waits for events
  Delays* delays = nullptr;  // before commands, if any
  uint32_t program = 0;
  uint32_t stream = 0;

  /// Executes every command once, repeats as often as they say.
  void run() const;
};

}  // namespace gpuc
