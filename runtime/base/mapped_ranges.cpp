#include "runtime/base/mapped_ranges.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "runtime/base/last_line.h"

namespace gpuc {

/// One range. Slots are used again and never freed: a signal may come while one is given back.
struct MappedRange::Slot {
  std::atomic<uintptr_t> begin{0};  // 0: free. Written last and cleared first
  size_t bytes = 0;
  std::string name;
  Slot* next = nullptr;
};

namespace {

std::mutex mutex;  // of those who add and remove; the handler takes none
std::atomic<void*> first_slot{nullptr};
struct sigaction former;

}  // namespace

MappedRange::MappedRange(const void* begin, size_t bytes, const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex);
  slot_ = static_cast<Slot*>(first_slot.load());
  while (slot_ && slot_->begin != 0) slot_ = slot_->next;
  if (!slot_) {
    slot_ = new Slot;
    slot_->next = static_cast<Slot*>(first_slot.load());
    first_slot = slot_;
  }
  slot_->bytes = bytes;
  slot_->name = name;
  slot_->begin = reinterpret_cast<uintptr_t>(begin);
}

MappedRange::~MappedRange() {
  std::lock_guard<std::mutex> lock(mutex);
  slot_->begin = 0;
}

MappedRange::Slot* MappedRange::find(const void* address) {
  uintptr_t place = reinterpret_cast<uintptr_t>(address);
  for (Slot* slot = static_cast<Slot*>(first_slot.load()); slot; slot = slot->next) {
    uintptr_t begin = slot->begin;
    if (begin != 0 && place >= begin && place - begin < slot->bytes) return slot;
  }
  return nullptr;
}

void endOnCutFiles() {
  // Calls nothing but what POSIX lists as safe in a handler.
  auto handle = [](int, siginfo_t* info, void*) {
    if (const MappedRange::Slot* slot = MappedRange::find(info->si_addr))
      endWithError({slot->name, ": cut short while it was read"});
    // Back in the program the same access is made again, and now ends as it would have.
    ::sigaction(SIGBUS, &former, nullptr);
  };
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &former);
}

}  // namespace gpuc
