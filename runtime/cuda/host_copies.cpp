#include "runtime/cuda/host_copies.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace gpuc::cuda {
namespace {

constexpr int kMostThreads = 16;
constexpr uint64_t kTile = uint64_t{64} << 10;
constexpr int64_t kLeastTiles = 8;  // for a thread: as long as it takes to wake one

struct Copy {
  std::byte* to;
  const std::byte* from;
  uint64_t bytes;
};

void copyTiles(const void* context, int64_t begin, int64_t end) {
  const Copy& copy = *static_cast<const Copy*>(context);
  uint64_t first = static_cast<uint64_t>(begin) * kTile;
  uint64_t last = std::min(static_cast<uint64_t>(end) * kTile, copy.bytes);
  std::memcpy(copy.to + first, copy.from + first, last - first);
}

int64_t tilesOf(uint64_t bytes) { return static_cast<int64_t>((bytes + kTile - 1) / kTile); }

}  // namespace

int threadsForCopies(uint64_t largest, int threads) {
  int all = std::min(threads > 0 ? threads : availableCores(), kMostThreads);
  return static_cast<int>(std::clamp<int64_t>(tilesOf(largest) / kLeastTiles, 1, all));
}

HostCopies::HostCopies(int threads) : pool_(threads) {}

void HostCopies::copy(void* to, const void* from, uint64_t bytes) {
  Copy copy{static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes};
  pool_.parallelFor(tilesOf(bytes), kLeastTiles, {copyTiles, &copy});
}

}  // namespace gpuc::cuda
