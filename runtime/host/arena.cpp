#include "runtime/host/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstring>

namespace gpuc {
namespace {

std::atomic<ArenaObserver> arena_observer{nullptr};

uint64_t roundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void observeArenas(ArenaObserver observer) { arena_observer = observer; }

Result<Arena> Arena::map(uint64_t bytes, bool guarded) {
  Arena arena;
  arena.bytes_ = bytes;
  if (ArenaObserver observer = arena_observer) observer(bytes);
  if (bytes == 0) return arena;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t mapped_bytes = guarded ? roundUp(bytes, page) + page : bytes;
  void* mapping = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return errorf("no memory for the arena of %" PRIu64 " bytes: %s", bytes, std::strerror(errno));
  arena.mapping_ = Mapping(mapping, {mapped_bytes});
  arena.data_ = static_cast<std::byte*>(mapping);
  constexpr uint64_t kHugePage = uint64_t{1} << 21;
  if (!guarded) {
    // Fewer entries in the page table; where the system refuses, nothing is lost.
    if (bytes >= 2 * kHugePage) madvise(mapping, bytes, MADV_HUGEPAGE);
    return arena;
  }
  std::byte* guard = arena.data_ + roundUp(bytes, page);
  if (mprotect(guard, page, PROT_NONE) != 0)
    return errorf("cannot protect the page behind the arena: %s", std::strerror(errno));
  arena.data_ = guard - bytes;
  std::memset(arena.data_, kPoison, bytes);
  return arena;
}

void Arena::poison(uint64_t begin, uint64_t end) {
  if (end > touched_bytes_) touched_bytes_ = touchedBefore(end);
  std::memset(data_ + begin, kPoison, end - begin);
}

uint64_t Arena::touchedBefore(uint64_t end) const {
  while (end > touched_bytes_ && data_[end - 1] == std::byte{kPoison}) --end;
  return std::max(end, touched_bytes_);
}

}  // namespace gpuc
